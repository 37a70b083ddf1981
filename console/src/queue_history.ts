// What queues have used while the console is open. The API knows their present amounts only, and its
// decisions name neither queues nor requests, so nothing is known of the time before.

import type { Queue } from "./objects.ts";
import { shortResource, writeQuantity } from "./quantities.ts";
import { sharesOf } from "./queue_tree.ts";

// Instants that are kept. When there are more, every other one is dropped.
export const INSTANTS_MAX = 240;
// Resources of queues; further ones have no history.
export const SERIES_MAX = 1_000;
const STEP_MS = 2_000;
// Lists may be late by this before a line is interrupted.
const LATE_MS = 6_000;

// An amount that was read; undefined: nothing was read then.
type Amounts = (number | undefined)[];

interface Series {
  used: Amounts;
  deserved: Amounts;
}

export interface Point {
  // Milliseconds since the epoch.
  at: number;
  used: number;
  deserved: number | undefined;
}

export class QueueHistory {
  private instants: number[] = [];
  // By queue and resource; each has a place for every instant.
  private series = new Map<string, Series>();
  private stepMs = STEP_MS;

  // When queues were read first; undefined: they were not.
  get since(): number | undefined {
    return this.instants[0];
  }

  // The queues as they were read `now`. The newest ones are always kept.
  take(queues: readonly Queue[], now: number): void {
    // The clock was set back: what was kept cannot be compared.
    if (now < (this.instants.at(-1) ?? 0)) this.clear();
    if (now - (this.instants.at(-2) ?? -Infinity) < this.stepMs) this.instants.pop();
    const at = this.instants.push(now) - 1;
    for (const one of this.series.values()) one.used[at] = one.deserved[at] = undefined;
    for (const queue of queues) {
      for (const share of sharesOf(queue)) {
        const series = this.seriesOf(queue.metadata.name, share.resource, at + 1);
        if (!series) continue;
        series.used[at] = share.used;
        series.deserved[at] = share.deserved;
      }
    }
    if (this.instants.length > INSTANTS_MAX) this.thin();
  }

  // Lines of points, the oldest first. Between two lines nothing was read.
  lines(queue: string, resource: string): Point[][] {
    const series = this.series.get(keyOf(queue, resource));
    const found: Point[][] = [];
    let before = -Infinity;
    this.instants.forEach((at, index) => {
      const used = series?.used[index];
      if (used === undefined) return;
      if (at - before > 2 * this.stepMs + LATE_MS || series?.used[index - 1] === undefined) found.push([]);
      found.at(-1)!.push({ at, used, deserved: series?.deserved[index] });
      before = at;
    });
    return found;
  }

  private seriesOf(queue: string, resource: string, length: number): Series | undefined {
    const key = keyOf(queue, resource);
    const known = this.series.get(key);
    if (known || this.series.size >= SERIES_MAX) return known;
    const made = { used: Array<undefined>(length).fill(undefined), deserved: Array<undefined>(length).fill(undefined) };
    this.series.set(key, made);
    return made;
  }

  private thin(): void {
    const last = this.instants.length - 1;
    const half = <T>(all: readonly T[]) => all.filter((_, at) => at % 2 === 0 || at === last);
    this.instants = half(this.instants);
    this.stepMs *= 2;
    for (const [key, one] of this.series) {
      one.used = half(one.used);
      one.deserved = half(one.deserved);
      if (one.used.every((value) => value === undefined)) this.series.delete(key);
    }
  }

  private clear(): void {
    this.instants = [];
    this.series = new Map();
    this.stepMs = STEP_MS;
  }
}

function keyOf(queue: string, resource: string): string {
  return JSON.stringify([queue, resource]);
}

// The drawing of lines: paths in a box of this size, in which the first instant is at the left, the
// last one at the right, 0 at the bottom, and the largest amount at the top.
export interface Drawing {
  used: string;
  // What is below `used`.
  area: string;
  deserved: string;
}

export function drawingOf(lines: readonly (readonly Point[])[], from: number, to: number, width: number, height: number): Drawing {
  const top = Math.max(...lines.flat().map((one) => Math.max(one.used, one.deserved ?? 0)), Number.MIN_VALUE);
  const x = (at: number) => round(to > from ? (width * (at - from)) / (to - from) : width);
  const y = (value: number) => round(height * (1 - Math.max(0, value) / top));
  const path = (line: readonly Point[], value: (one: Point) => number) =>
    // A line of one point is drawn as a dot.
    `${line.map((one, at) => `${at ? "L" : "M"}${x(one.at)} ${y(value(one))}`).join("")}${line.length === 1 ? "h0" : ""}`;
  const deserving = lines.flatMap((line) => splitAt(line, (one) => one.deserved === undefined));
  return {
    used: lines.map((line) => path(line, (one) => one.used)).join(""),
    area: lines.map((line) => `${path(line, (one) => one.used)}V${height}H${x(line[0]!.at)}Z`).join(""),
    deserved: deserving.map((line) => path(line, (one) => one.deserved!)).join(""),
  };
}

function splitAt<T>(all: readonly T[], isGap: (one: T) => boolean): T[][] {
  const found: T[][] = [];
  all.forEach((one, at) => {
    if (isGap(one)) return;
    if (at === 0 || isGap(all[at - 1]!)) found.push([]);
    found.at(-1)!.push(one);
  });
  return found;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

// The drawing in words: "gpu: 700 used (650 to 720); 900 deserved (unchanged)". The newest amounts
// come first.
export function describe(resource: string, lines: readonly (readonly Point[])[]): string {
  const points = lines.flat();
  const range = (values: readonly number[]) => {
    const [least, most] = [Math.min(...values), Math.max(...values)].map((one) => writeQuantity(resource, one));
    return least === most ? "unchanged" : `${least} to ${most}`;
  };
  const last = points.at(-1);
  if (!last) return `${shortResource(resource)}: nothing is known`;
  const deserved = points.map((one) => one.deserved).filter((one) => one !== undefined);
  const text = `${shortResource(resource)}: ${writeQuantity(resource, last.used)} used (${range(points.map((one) => one.used))})`;
  if (last.deserved === undefined) return text;
  return `${text}; ${writeQuantity(resource, last.deserved)} deserved (${range(deserved)})`;
}
