// The tree of queues: shares, and the gangs that wait in each.

import { useMemo } from "preact/hooks";
import type { PageProps } from "../main.tsx";
import { type Gang, placeOf, titleOf } from "../objects.ts";
import { byImportance, shortResource, writeQuantity } from "../quantities.ts";
import { describe, drawingOf, type Point } from "../queue_history.ts";
import { queueRows, type Share, sharesOf } from "../queue_tree.ts";
import { addressOf } from "../address.ts";
import { setQuery, useFeed, useNow, useSession } from "../state.ts";
import { age, writeDuration, writeInstant } from "../time.ts";
import { Amount, Bar, Empty, GangLink, Gangs, Scroll, Title } from "../widgets.tsx";
import type { Queue } from "../objects.ts";

const WAITING_MAX = 50;

export function QueuesPage({ route }: PageProps) {
  const { queues, gangs } = useSession();
  const known = useFeed(queues);
  const all = useFeed(gangs);
  const rows = useMemo(() => queueRows(known.items), [known.items]);
  const waiting = useMemo(() => waitingByQueue(all.items), [all.items]);
  const open = route.query.get("queue") ?? "";
  return (
    <>
      <Title of={[known, all]}>Queues</Title>
      {known.freshness === "live" && !rows.length && <Empty>There are no queues.</Empty>}
      {rows.length > 0 && (
        <Scroll label="Queues">
          <table class="tree">
            <thead>
              <tr>
                <th scope="col">Queue</th><th scope="col" class="number">Running</th><th scope="col" class="number">Waiting</th>
                <th scope="col">Resource</th><th scope="col" class="wide">Share</th><th scope="col" class="number">Used</th>
                <th scope="col" class="number">Deserved</th><th scope="col" class="number">Borrowed</th>
                <th scope="col" class="number">Limit</th><th scope="col" class="number">Waited for</th>
              </tr>
            </thead>
            {rows.map(({ queue, depth }) => (
              <QueueRows key={queue.metadata.name} queue={queue} depth={depth} open={open === queue.metadata.name}
                waiting={waiting.get(queue.metadata.name) ?? []} />
            ))}
          </table>
        </Scroll>
      )}
      <Legend />
    </>
  );
}

function waitingByQueue(gangs: readonly Gang[]): Map<string, Gang[]> {
  const found = new Map<string, Gang[]>();
  for (const one of gangs) {
    if (!one.status.pending) continue;
    const known = found.get(one.status.queue);
    if (known) known.push(one);
    else found.set(one.status.queue, [one]);
  }
  for (const some of found.values()) some.sort((a, b) => (since(a) < since(b) ? -1 : 1));
  return found;
}

function since(gang: Gang): string {
  return gang.status.pending?.since ?? gang.metadata.creationTimestamp ?? "";
}

function QueueRows({ queue, depth, open, waiting }: { queue: Queue; depth: number; open: boolean; waiting: Gang[] }) {
  const { name } = queue.metadata;
  const { status } = queue;
  const shares = sharesOf(queue);
  const order = byImportance(shares.map((one) => one.resource));
  const sorted = order.map((resource) => shares.find((one) => one.resource === resource)!);
  const lines: (Share | undefined)[] = sorted.length ? sorted : [undefined];
  const remarks = [
    status.exists ? "" : "no such queue", status.state && status.state !== "Open" ? status.state : "",
    status.strict ? "strict order" : "", status.reclaimable ? "" : "not reclaimable", `weight ${status.weight}`,
  ].filter(Boolean).join(", ");
  return (
    <tbody>
      {lines.map((share, at) => (
        <tr key={share?.resource ?? ""}>
          {at === 0 && (
            <>
              <th scope="rowgroup" rowSpan={lines.length}>
                <span class="indent" style={{ paddingLeft: `${Math.min(depth, 8) * 1.25}rem` }}>
                  <button type="button" class="disclosure" aria-expanded={open} onClick={() => setQuery("queue", open ? "" : name)}>
                    {name}
                  </button>
                  <small>{remarks}</small>
                </span>
              </th>
              <td class="number" rowSpan={lines.length}>{status.gangs.running}</td>
              <td class="number" rowSpan={lines.length}>{status.gangs.waiting + status.gangs.notAdmitted}</td>
            </>
          )}
          {share ? <ShareCells share={share} /> : <td colSpan={7} />}
        </tr>
      ))}
      {open && <tr><td colSpan={10} class="details"><Details queue={queue} waiting={waiting} /></td></tr>}
    </tbody>
  );
}

function ShareCells({ share }: { share: Share }) {
  const { resource, used, wanted, promised, reserved, deserved, limit, borrowed } = share;
  const own = used - borrowed;
  const write = (value: number) => writeQuantity(resource, value);
  const label = `${resource}: uses ${write(used)}${deserved === undefined ? "" : `, deserves ${write(deserved)}`}`
    + `${limit === undefined ? "" : `, at most ${write(limit)}`}, waits for ${write(wanted)}`;
  return (
    <>
      <td title={resource}>{shortResource(resource)}</td>
      <td class="wide">
        <Bar label={label} whole={Math.max(limit ?? 0, deserved ?? 0, used + promised + reserved + wanted)}
          parts={[
            { kind: "used", value: own, title: "used" }, { kind: "borrowed", value: borrowed, title: "borrowed" },
            { kind: "kept", value: promised + reserved, title: "kept" }, { kind: "wanted", value: wanted, title: "waited for" },
          ]}
          marks={deserved === undefined ? [] : [{ kind: "deserved", value: deserved, title: "deserved" }]} />
      </td>
      <td class="number"><Amount resource={resource} value={used} /></td>
      <td class="number"><Amount resource={resource} value={deserved} /></td>
      <td class="number"><Amount resource={resource} value={borrowed || undefined} /></td>
      <td class="number"><Amount resource={resource} value={limit} /></td>
      <td class="number"><Amount resource={resource} value={wanted || undefined} /></td>
    </>
  );
}

function Details({ queue, waiting }: { queue: Queue; waiting: Gang[] }) {
  const now = useNow();
  const { name } = queue.metadata;
  return (
    <>
      {queue.status.message && <p>{queue.status.message}</p>}
      {queue.status.holders && <p>Held mostly by: <Gangs named={queue.status.holders} /></p>}
      <History queue={queue} now={now} />
      {!waiting.length && <p>No gang that you may see waits in this queue itself.</p>}
      {waiting.length > 0 && (
        <table>
          <thead><tr><th scope="col">Waiting gang</th><th scope="col" class="number">Members</th><th scope="col">Since</th><th scope="col">Why</th></tr></thead>
          <tbody>
            {waiting.slice(0, WAITING_MAX).map((one) => (
              <tr key={placeOf(one)}>
                <td><GangLink place={placeOf(one)} title={titleOf(one)} /></td>
                <td class="number">{one.status.members.pending}</td>
                <td>{age(since(one), now)}</td>
                <td class="sentence">{one.status.pending?.message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <p><a href={`${addressOf("gangs")}?${new URLSearchParams({ queue: name })}`}>All gangs of {name}</a></p>
    </>
  );
}

function History({ queue, now }: { queue: Queue; now: number }) {
  const { queueHistory } = useSession();
  const { name } = queue.metadata;
  const from = queueHistory.since;
  const resources = byImportance((queue.status.resources ?? []).map((one) => one.resource));
  if (from === undefined || !resources.length) return null;
  return (
    <section>
      <h2>Since this page was opened <small>{writeInstant(new Date(from).toISOString())}, {writeDuration(now - from)} ago</small></h2>
      <ul class="sparklines">
        {resources.map((one) => <Sparkline key={one} resource={one} lines={queueHistory.lines(name, one)} from={from} to={now} />)}
      </ul>
      <p class="empty">Used, and as a dashed line deserved, while this page or the overview was shown. Nothing is known of gaps.</p>
    </section>
  );
}

const [WIDTH, HEIGHT] = [240, 32];

function Sparkline({ resource, lines, from, to }: { resource: string; lines: readonly Point[][]; from: number; to: number }) {
  const drawing = drawingOf(lines, from, Math.max(to, lines.at(-1)?.at(-1)?.at ?? to), WIDTH, HEIGHT);
  const words = describe(resource, lines);
  return (
    <li title={resource}>
      <svg role="img" aria-label={words} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none">
        <path class="area" d={drawing.area} /><path class="line" d={drawing.used} /><path class="line share" d={drawing.deserved} />
      </svg>
      <span aria-hidden="true">{words}</span>
    </li>
  );
}

function Legend() {
  return (
    <ul class="legend" aria-label="Colours of the shares">
      <li><span class="used" /> used</li>
      <li><span class="borrowed" /> used beyond its deserved share</li>
      <li><span class="kept" /> kept for admitted gangs and lost members</li>
      <li><span class="wanted" /> waited for</li>
      <li><span class="mark" /> deserved share</li>
    </ul>
  );
}
