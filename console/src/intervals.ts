// When gangs were on which nodes, from the decisions that the API keeps.

import { type Decision, type Gang, placeOf } from "./objects.ts";

export interface Interval {
  gang: string;
  node: string;
  // Milliseconds since the epoch; `end` is infinite while it lasts.
  start: number;
  end: number;
  // "now": it is there now. "known": its pods were evicted then. "unknown": it is not there any
  // more, and no decision says since when: it has completed, or was deleted.
  ended: "now" | "known" | "unknown";
  pods: number;
}

const ON_NODES = new Set(["Starting", "Running", "Unknown"]);

// One interval for each node of each decision to bind, by time.
export function intervalsOf(decisions: readonly Decision[], gangs: readonly Gang[]): Interval[] {
  const evicted = new Map<string, number>();
  for (const { status } of decisions) {
    if (status.action !== "Evict") continue;
    for (const pod of status.pods ?? []) evicted.set(pod.uid, Date.parse(status.time));
  }
  const present = new Map<string, Set<string>>();
  for (const gang of gangs) {
    if (ON_NODES.has(gang.status.phase)) present.set(placeOf(gang), new Set((gang.status.placement ?? []).map((one) => one.node)));
  }
  const found: Interval[] = [];
  for (const { status } of decisions) {
    if (status.action !== "Bind") continue;
    const start = Date.parse(status.time);
    const byNode = new Map<string, string[]>();
    for (const pod of status.pods ?? []) byNode.set(pod.node ?? "", [...(byNode.get(pod.node ?? "") ?? []), pod.uid]);
    for (const [node, uids] of byNode) {
      const ends = uids.map((uid) => evicted.get(uid));
      const whole = { gang: status.gang, node, start, pods: uids.length };
      if (ends.every((one) => one !== undefined && one >= start)) {
        found.push({ ...whole, end: Math.max(...(ends as number[])), ended: "known" });
      } else if (present.get(status.gang)?.has(node)) {
        found.push({ ...whole, end: Infinity, ended: "now" });
      } else {
        found.push({ ...whole, end: start, ended: "unknown" });
      }
    }
  }
  return found.sort((a, b) => a.start - b.start);
}

export type RowsBy = "gang" | "node";

export interface Row {
  name: string;
  intervals: Interval[];
}

// Rows by node, by name; or by gang, the newest first, in which the nodes of one decision are one
// interval.
export function rowsOf(intervals: readonly Interval[], by: RowsBy, text: string): Row[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = new Map<string, Row>();
  for (const one of intervals) {
    const searched = `${one.gang} ${one.node}`.toLowerCase();
    if (!words.every((word) => searched.includes(word))) continue;
    const name = by === "gang" ? one.gang : one.node;
    const row = rows.get(name) ?? { name, intervals: [] };
    const last = row.intervals.at(-1);
    if (by === "gang" && last && last.start === one.start && last.ended === one.ended) {
      row.intervals[row.intervals.length - 1] = { ...last, pods: last.pods + one.pods, end: Math.max(last.end, one.end), node: "" };
    } else {
      row.intervals.push(one);
    }
    rows.set(name, row);
  }
  const newest = (row: Row) => row.intervals.at(-1)!.start;
  return [...rows.values()].sort((a, b) =>
    by === "node" ? (a.name < b.name ? -1 : 1) : newest(b) - newest(a) || (a.name < b.name ? -1 : 1));
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
