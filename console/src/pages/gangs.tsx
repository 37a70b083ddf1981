// The list of gangs: search, phases, and why each waits.

import { useMemo, useState } from "preact/hooks";
import type { PageProps } from "../main.tsx";
import { type Gang, placeOf, titleOf } from "../objects.ts";
import { PHASES, phaseCounts, search } from "../overview.ts";
import { setQuery, useFeed, useNow, useSession } from "../state.ts";
import { age } from "../time.ts";
import { Empty, GangLink, PhaseBadge, Scroll, Title } from "../widgets.tsx";

const ROWS = 100;

export function GangsPage({ route }: PageProps) {
  const { gangs } = useSession();
  const known = useFeed(gangs);
  const now = useNow();
  const [rows, setRows] = useState(ROWS);
  const text = route.query.get("search") ?? "";
  const phase = route.query.get("phase") ?? "";
  const queue = route.query.get("queue") ?? "";
  const inQueue = useMemo(
    () => search(known.items, text).filter((one) => !queue || one.status.queue === queue), [known.items, text, queue]);
  const counts = useMemo(() => phaseCounts(inQueue), [inQueue]);
  const found = useMemo(() => inQueue.filter((one) => !phase || one.status.phase === phase).sort(order), [inQueue, phase]);
  return (
    <>
      <Title of={[known]}>Gangs</Title>
      <div class="filters" role="group" aria-label="Phase">
        <button type="button" aria-pressed={!phase} onClick={() => setQuery("phase", "")}>All {inQueue.length}</button>
        {PHASES.map((one) => (
          <button key={one} type="button" aria-pressed={phase === one} onClick={() => setQuery("phase", phase === one ? "" : one)}>
            {one} {counts.get(one)}
          </button>
        ))}
        {queue && <button type="button" onClick={() => setQuery("queue", "")}>Queue: {queue} ✕</button>}
        {text && <button type="button" onClick={() => setQuery("search", "")}>Search: {text} ✕</button>}
      </div>
      {known.freshness === "live" && !found.length && <Empty>No gang that you may see is like this.</Empty>}
      {found.length > 0 && (
        <Scroll label="Gangs">
          <table class="list">
            <thead>
              <tr>
                <th scope="col">Gang</th><th scope="col">Phase</th><th scope="col" class="number">Running</th>
                <th scope="col" class="number">Minimum</th><th scope="col">Queue</th><th scope="col">Age</th><th scope="col">Why it waits</th>
              </tr>
            </thead>
            <tbody>{found.slice(0, rows).map((one) => <Row key={placeOf(one)} gang={one} now={now} />)}</tbody>
          </table>
        </Scroll>
      )}
      {found.length > rows && (
        <p><button type="button" onClick={() => setRows(rows + 4 * ROWS)}>Show more: {found.length - rows} are left</button></p>
      )}
    </>
  );
}

// Waiting gangs first, then by name.
function order(a: Gang, b: Gang): number {
  const waits = (one: Gang) => (one.status.pending ? 0 : 1);
  return waits(a) - waits(b) || (placeOf(a) < placeOf(b) ? -1 : 1);
}

function Row({ gang, now }: { gang: Gang; now: number }) {
  const { status, metadata } = gang;
  return (
    <tr>
      <th scope="row"><GangLink place={placeOf(gang)} title={titleOf(gang)} /></th>
      <td><PhaseBadge phase={status.phase} /></td>
      <td class="number">{status.members.running}/{status.members.total}</td>
      <td class="number extra">{status.minMember}</td>
      <td>{status.queue}</td>
      <td>{age(metadata.creationTimestamp, now)}</td>
      <td class="sentence">{status.pending?.message}</td>
    </tr>
  );
}
