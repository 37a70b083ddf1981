// Gangs on nodes over time, from the decisions.

import { useMemo, useState } from "preact/hooks";
import { gangAddress } from "../address.ts";
import { colourOf } from "../colours.ts";
import { endOf, type Interval, intervalsOf, type Row, rowsOf, type RowsBy, spanIn, ticks } from "../intervals.ts";
import type { PageProps } from "../main.tsx";
import { setQuery, useFeed, useNow, useSession } from "../state.ts";
import { writeDuration } from "../time.ts";
import { Choice, Empty, Title } from "../widgets.tsx";

const ROWS = 100;
const ALL = "all";
const LENGTHS_MS: Record<string, number> = { "15m": 900_000, "1h": 3_600_000, "6h": 21_600_000, "24h": 86_400_000 };
const SHORTEST_MS = 10_000;

export function TimelinePage({ route }: PageProps) {
  const session = useSession();
  const decisions = useFeed(session.decisions);
  const gangs = useFeed(session.gangs);
  const now = useNow(2_000);
  const by: RowsBy = route.query.get("by") === "node" ? "node" : "gang";
  const length = route.query.get("length") ?? ALL;
  const text = route.query.get("filter") ?? "";
  const [rowsMax, setRowsMax] = useState(ROWS);
  // A window that the user has zoomed to or moved; undefined: the chosen length until now.
  const [own, setOwn] = useState<[number, number]>();
  const intervals = useMemo(() => intervalsOf(decisions.items, gangs.items), [decisions.items, gangs.items]);
  const rows = useMemo(() => rowsOf(intervals, by, text), [intervals, by, text]);
  const begin = now - (LENGTHS_MS[length] ?? Math.max(SHORTEST_MS, now - (intervals[0]?.start ?? now)));
  const [from, to] = own ?? [begin, endOf(intervals, begin, now)];
  const zoom = (factor: number, at = 0.5) => {
    const size = Math.max(SHORTEST_MS, (to - from) * factor);
    const centre = from + (to - from) * at;
    setOwn([centre - size * at, centre + size * (1 - at)]);
  };
  const shift = (part: number) => setOwn([from + (to - from) * part, to + (to - from) * part]);
  const typed = (event: KeyboardEvent) => {
    const action = {
      "+": () => zoom(0.5), "-": () => zoom(2), ArrowLeft: () => shift(-0.25), ArrowRight: () => shift(0.25), "0": () => setOwn(undefined),
    }[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  };
  const wheel = (event: WheelEvent) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const at = Math.min(1, Math.max(0, (event.clientX - box.left - box.width * 0.2) / (box.width * 0.8)));
    zoom(event.deltaY > 0 ? 1.25 : 0.8, at);
  };
  return (
    <>
      <Title of={[decisions, gangs]}>Timeline</Title>
      <div class="filters">
        <Choice label="Rows" value={by} options={["gang", "node"]} onChoice={(one) => setQuery("by", one)} />
        <Choice label="Length" value={length} options={[...Object.keys(LENGTHS_MS), ALL]}
          onChoice={(one) => { setOwn(undefined); setQuery("length", one); }} />
        <label>Filter <input type="search" value={text} onInput={(event) => setQuery("filter", event.currentTarget.value)} /></label>
        <span role="group" aria-label="Zoom">
          <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>{" "}
          <button type="button" onClick={() => zoom(2)} aria-label="Zoom out">−</button>{" "}
          <button type="button" onClick={() => shift(-0.25)} aria-label="Earlier">←</button>{" "}
          <button type="button" onClick={() => shift(0.25)} aria-label="Later">→</button>{" "}
          <button type="button" onClick={() => setOwn(undefined)} disabled={!own}>Now</button>
        </span>
      </div>
      {decisions.freshness === "live" && !rows.length && <Empty>No decision that you may see is like this.</Empty>}
      {rows.length > 0 && (
        <div class="timeline" role="region" aria-label="Timeline; + and − zoom, arrow keys move, 0 resets" tabIndex={0}
          onKeyDown={typed} onWheel={wheel}>
          <Axis from={from} to={to} />
          <ul>{rows.slice(0, rowsMax).map((row) => <RowView key={row.name} row={row} by={by} from={from} to={to} now={now} />)}</ul>
        </div>
      )}
      {rows.length > rowsMax && (
        <p><button type="button" onClick={() => setRowsMax(rowsMax + 4 * ROWS)}>Show more: {rows.length - rowsMax} are left</button></p>
      )}
      <p class="empty">The newest 10,000 decisions, and the gangs that exist. Hatched: a gang waited. Dashed: it is expected to start in between. A short bar with an open end: the gang is gone, and the service that answers started after its end.</p>
    </>
  );
}

function Axis({ from, to }: { from: number; to: number }) {
  const days = to - from > 86_400_000;
  return (
    <div class="axis" aria-hidden="true">
      <span>UTC</span>
      <div class="track">
        {ticks(from, to).map((at) => (
          <span key={at} style={{ left: `${(100 * (at - from)) / (to - from)}%` }}>
            {new Date(at).toISOString().slice(days ? 5 : 11, to - from < 120_000 ? 19 : 16).replace("T", " ")}
          </span>
        ))}
      </div>
    </div>
  );
}

function RowView({ row, by, from, to, now }: { row: Row; by: RowsBy; from: number; to: number; now: number }) {
  return (
    <li>
      {by === "gang" ? <a href={gangAddress(row.intervals.at(-1)!.gang)}>{row.name}</a> : <span>{row.name}</span>}
      <div class="track">
        {row.intervals.map((one) => <IntervalView key={`${one.gang} ${one.start} ${one.ended}`} one={one} from={from} to={to} now={now} />)}
      </div>
    </li>
  );
}

function IntervalView({ one, from, to, now }: { one: Interval; from: number; to: number; now: number }) {
  const end = one.ended === "expected" ? one.end : Math.min(one.end, Math.max(now, one.start));
  const span = spanIn({ ...one, end }, from, to);
  if (!span) return null;
  const length = writeDuration(end - one.start);
  const then = one.how ? `, then ${one.how}` : "";
  const ended = {
    expected: `expected to start before ${new Date(end).toISOString().slice(0, 19)}Z${one.how ? `: ${one.how}` : ""}`,
    waited: `waited for ${length}${one.how ? `: ${one.how}` : ""}`, now: `for ${length}`, done: `for ${length}${then}`, known: `for ${length}${then}`,
    unknown: "end unknown",
  };
  const label = `${one.title}${one.node ? ` on ${one.node}` : ""}: ${one.pods} pods from ${new Date(one.start).toISOString().slice(0, 19)}Z, ${ended[one.ended]}`;
  return (
    <a class={`interval ${one.ended}`} href={gangAddress(one.gang)} title={label} aria-label={label} tabIndex={-1}
      style={{ left: `${span.left}%`, width: one.ended === "unknown" ? "1.5rem" : `${span.width}%`, color: colourOf(one.gang) }} />
  );
}
