// Paste manifests: would their gangs fit now?

import { useMemo, useRef, useState } from "preact/hooks";
import { namespaceOf, readManifests } from "../manifests.ts";
import type { Fit, GangFit } from "../objects.ts";
import { useFeed, useSession } from "../state.ts";
import { Gangs, Scroll, Title } from "../widgets.tsx";

const NODES_MAX = 100;

export function WhatIfPage() {
  const session = useSession();
  const gangs = useFeed(session.gangs);
  const namespaces = useMemo(() => [...new Set(gangs.items.map((one) => one.metadata.namespace ?? ""))].sort(), [gangs.items]);
  const [text, setText] = useState("");
  const [namespace, setNamespace] = useState("");
  const [asking, setAsking] = useState(false);
  const [failure, setFailure] = useState("");
  const [answer, setAnswer] = useState<Fit>();
  const question = useRef<AbortController | undefined>(undefined);

  const ask = async () => {
    question.current?.abort();
    const mine = (question.current = new AbortController());
    setFailure("");
    setAnswer(undefined);
    setAsking(true);
    try {
      const manifests = readManifests(text);
      const found = await session.api.fit(namespace || namespaceOf(manifests) || "default", manifests, mine.signal);
      if (!mine.signal.aborted) setAnswer(found);
    } catch (error) {
      if (!mine.signal.aborted) setFailure(error instanceof Error ? error.message : String(error));
    } finally {
      if (!mine.signal.aborted) setAsking(false);
    }
  };
  const take = async (files: FileList | null | undefined) => {
    const texts = await Promise.all([...(files ?? [])].map((one) => one.text()));
    if (texts.length) setText(texts.join("\n---\n"));
  };
  return (
    <>
      <Title of={[gangs]}>What if</Title>
      <p>Would the gangs of these manifests fit now? Nothing is created.</p>
      <form onSubmit={(event) => { event.preventDefault(); void ask(); }}
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => { event.preventDefault(); void take(event.dataTransfer?.files); }}>
        <label for="manifests">Manifests (YAML or JSON; paste or drop files)</label>
        <textarea id="manifests" rows={16} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => { if (event.key === "Enter" && event.ctrlKey) void ask(); }} />
        <div class="filters">
          <label>Namespace <input list="namespaces" value={namespace} placeholder="of the manifests" onInput={(event) => setNamespace(event.currentTarget.value)} /></label>
          <datalist id="namespaces">{namespaces.map((one) => <option key={one} value={one} />)}</datalist>
          <label class="file">File <input type="file" multiple accept=".yaml,.yml,.json" onChange={(event) => void take(event.currentTarget.files)} /></label>
          <button type="submit" disabled={asking || !text.trim()}>{asking ? "Asking …" : "Does it fit?"}</button>
        </div>
      </form>
      <div aria-live="polite">
        {failure && <p class="error">{failure}</p>}
        {answer?.status && <Answer gangs={answer.status.gangs ?? []} />}
      </div>
    </>
  );
}

function Answer({ gangs }: { gangs: readonly GangFit[] }) {
  return <>{gangs.map((one) => <GangAnswer key={one.name} fit={one} />)}</>;
}

function GangAnswer({ fit }: { fit: GangFit }) {
  const [word, kind] = fit.fits ? ["fits now", "good"] : fit.refused ? ["refused", "bad"] : fit.ever ? ["does not fit now", "wait"] : [fit.needsNodes ? "needs more or other nodes" : "can never run here", "bad"];
  const placement = fit.placement ?? [];
  return (
    <section>
      <h2>{fit.name} <span class={`badge ${kind}`}>{word}</span></h2>
      <p>{fit.members} members. {fit.message}</p>
      {fit.displaces && (
        <p>{fit.displaces.members} pods would be evicted for it ({fit.displaces.action}): <Gangs named={fit.displaces.gangs} /></p>
      )}
      {placement.length > 0 && (
        <Scroll label={`Placement of ${fit.name}`}>
          <table>
            <thead><tr><th scope="col">Node</th><th scope="col" class="number">Members</th></tr></thead>
            <tbody>{placement.slice(0, NODES_MAX).map((one) => <tr key={one.node}><th scope="row">{one.node}</th><td class="number">{one.members}</td></tr>)}</tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
}
