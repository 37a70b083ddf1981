// When gangs waited, and when they were on which nodes: from the decisions that the API keeps, and the gangs that exist.

import { type Decision, type Gang, gangOf, placeOf, titleOf } from "./objects.ts";

export interface Interval {
  gang: string;
  // Its namespace and its name for users. Gangs that were one after the other may have the same.
  title: string;
  // "": it waits.
  node: string;
  // Milliseconds since the epoch; `end` is infinite while it lasts.
  start: number;
  end: number;
  // "waited": it waited. "now": it is there now. "done", "known": its pods ended, or were evicted, failed or deleted then.
  // "unknown": it is not there any more, and nothing says since when. "expected": it is expected to start in between.
  ended: "expected" | "waited" | "now" | "done" | "known" | "unknown";
  // How it ended, in a word.
  how: string;
  pods: number;
}

const ON_NODES = new Set(["Starting", "Running", "Unknown"]);
const WAITING = new Set(["Pending", "Inqueue"]);
// The end of an interval whose pods ended differently: the first of these.
const WORST_FIRST = ["evicted", "failed", "deleted", "succeeded"];

interface End {
  at: number;
  how: string;
}

// One interval for each node of each decision to bind, and those in which gangs waited, by time.
export function intervalsOf(decisions: readonly Decision[], gangs: readonly Gang[]): Interval[] {
  const byPlace = new Map(gangs.map((one) => [placeOf(one), one]));
  const ends = endsOf(decisions);
  const bound = new Set<string>();
  const found: Interval[] = [];
  // Of gangs that exist: their first decision, and when they were on nodes last.
  const first = new Map<Gang, number>();
  const left = new Map<Gang, number>();
  for (const one of decisions) {
    const { status } = one;
    if (status.action !== "Bind") continue;
    const gang = gangOf(one, byPlace);
    const start = Date.parse(status.time);
    if (gang && !first.has(gang)) first.set(gang, start);
    const byNode = new Map<string, string[]>();
    for (const pod of status.pods ?? []) {
      // The planner repeats decisions that the log will drop: the first one bound the pod.
      if (!bound.has(pod.uid)) byNode.set(pod.node ?? "", [...(byNode.get(pod.node ?? "") ?? []), pod.uid]);
      bound.add(pod.uid);
    }
    const present = new Set(gang && ON_NODES.has(gang.status.phase) ? (gang.status.placement ?? []).map((each) => each.node) : []);
    for (const [node, uids] of byNode) {
      const ended = intervalEnd(start, uids.map((uid) => ends.get(uid)), present.has(node));
      if (gang) left.set(gang, Math.max(left.get(gang) ?? 0, ended.end));
      found.push({ gang: status.gang, title: gang ? titleOf(gang) : goneTitle(one), node, start, pods: uids.length, ...ended });
    }
  }
  for (const gang of gangs) found.push(...waitsOf(gang, first.get(gang), left.get(gang) ?? 0));
  return found.sort((a, b) => a.start - b.start);
}

// When and how pods ended: as the API has it, or by their evictions.
function endsOf(decisions: readonly Decision[]): Map<string, End> {
  const found = new Map<string, End>();
  const evicted = new Set<string>();
  for (const { status } of decisions) {
    for (const pod of status.pods ?? []) {
      if (status.action === "Evict") {
        evicted.add(pod.uid);
        if (!found.has(pod.uid)) found.set(pod.uid, { at: Date.parse(status.time), how: "evicted" });
      } else if (pod.ended) {
        found.set(pod.uid, { at: Date.parse(pod.ended), how: (pod.end ?? "").toLowerCase() });
      }
    }
  }
  for (const uid of evicted) {
    const end = found.get(uid);
    if (end?.how === "deleted") found.set(uid, { ...end, how: "evicted" });
  }
  return found;
}

function intervalEnd(start: number, ends: readonly (End | undefined)[], isThere: boolean): Pick<Interval, "end" | "ended" | "how"> {
  const known = ends.filter((one): one is End => one !== undefined && one.at >= start);
  if (known.length === ends.length) {
    const how = WORST_FIRST.find((word) => known.some((one) => one.how === word)) ?? "";
    return { end: Math.max(...known.map((one) => one.at)), ended: how === "succeeded" ? "done" : "known", how };
  }
  return isThere ? { end: Infinity, ended: "now", how: "" } : { end: start, ended: "unknown", how: "" };
}

// A gang that exists waited until its first decision, and waits since its pods have left.
function* waitsOf(gang: Gang, first: number | undefined, left: number): Generator<Interval> {
  const { metadata, status } = gang;
  if (!metadata.creationTimestamp) return;
  const created = Date.parse(metadata.creationTimestamp);
  const wait = { gang: placeOf(gang), title: titleOf(gang), node: "", pods: status.members.total, ended: "waited" as const };
  if (first !== undefined && first > created) yield { ...wait, start: created, end: first, how: "" };
  if (WAITING.has(status.phase) && !status.placement?.length) {
    yield { ...wait, start: Math.max(created, Number.isFinite(left) ? left : 0), end: Infinity, how: status.pending?.reason ?? "" };
    const { earliest, latest, basis = "" } = status.expectedStart ?? {};
    if (earliest && latest) yield { ...wait, ended: "expected", start: Date.parse(earliest), end: Date.parse(latest), how: basis };
  }
}

function goneTitle({ status }: Decision): string {
  const at = status.gang.indexOf("/");
  return `${status.gang.slice(0, at)}/${status.title || status.gang.slice(at + 1)}`;
}

export type RowsBy = "gang" | "node";

export interface Row {
  name: string;
  intervals: Interval[];
}

// Rows by node, by name, without gangs that waited; or by gang, the newest first, in which the nodes of one decision are one
// interval.
export function rowsOf(intervals: readonly Interval[], by: RowsBy, text: string): Row[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = new Map<string, Row>();
  for (const one of intervals) {
    if (by === "node" && (one.ended === "waited" || one.ended === "expected")) continue;
    const searched = `${one.title} ${one.gang} ${one.node}`.toLowerCase();
    if (!words.every((word) => searched.includes(word))) continue;
    const name = by === "gang" ? one.title : one.node;
    const row = rows.get(name) ?? { name, intervals: [] };
    const last = row.intervals.at(-1);
    if (by === "gang" && last && last.gang === one.gang && last.start === one.start && last.ended === one.ended) {
      const how = WORST_FIRST.find((word) => word === last.how || word === one.how) ?? "";
      row.intervals[row.intervals.length - 1] = { ...last, pods: last.pods + one.pods, end: Math.max(last.end, one.end), node: "", how };
    } else {
      row.intervals.push(one);
    }
    rows.set(name, row);
  }
  const newest = (row: Row) => row.intervals.findLast((one) => one.ended !== "expected")?.start ?? 0;
  return [...rows.values()].sort((a, b) =>
    by === "node" ? (a.name < b.name ? -1 : 1) : newest(b) - newest(a) || (a.name < b.name ? -1 : 1));
}

// The end of a window until now: later if gangs are expected to start, by a third of it at most.
export function endOf(intervals: readonly Interval[], from: number, now: number): number {
  const latest = intervals.reduce((end, one) => (one.ended === "expected" ? Math.max(end, one.end) : end), now);
  return Math.min(latest, now + (now - from) / 3);
}

export interface Span {
  left: number;
  width: number;
}

// Where an interval is in a window of time, in percent; undefined: outside.
export function spanIn(one: Interval, from: number, to: number): Span | undefined {
  if (one.start >= to || one.end < from || to <= from) return undefined;
  const left = Math.max(0, (one.start - from) / (to - from));
  const right = Math.min(1, (one.end - from) / (to - from));
  return { left: left * 100, width: Math.max(0, right - left) * 100 };
}

const STEPS_S = [1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800];

// Instants for the axis: at most ten.
export function ticks(from: number, to: number): number[] {
  const step = (STEPS_S.find((one) => (to - from) / (one * 1000) <= 10) ?? 2_592_000) * 1000;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at < to && found.length < 100; at += step) found.push(at);
  return found;
}
