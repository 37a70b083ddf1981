// Queues as rows of a tree, and what each uses of its share.

import type { Queue } from "./objects.ts";
import { amount, readQuantity } from "./quantities.ts";

export interface QueueRow {
  queue: Queue;
  depth: number;
}

// All queues, each below its parent, by name. Queues whose parents do not exist, or that are their
// own ancestors, are at the top.
export function queueRows(queues: readonly Queue[]): QueueRow[] {
  const byName = new Map(queues.map((one) => [one.metadata.name, one]));
  const children = new Map<string, Queue[]>();
  for (const one of queues) {
    const parent = one.status.parent ?? "";
    const key = byName.has(parent) && parent !== one.metadata.name ? parent : "";
    children.set(key, [...(children.get(key) ?? []), one]);
  }
  const rows: QueueRow[] = [];
  const seen = new Set<Queue>();
  const visit = (one: Queue, depth: number) => {
    if (seen.has(one)) return;
    seen.add(one);
    rows.push({ queue: one, depth });
    for (const child of sorted(children.get(one.metadata.name) ?? [])) visit(child, depth + 1);
  };
  for (const one of sorted(children.get("") ?? [])) visit(one, 0);
  for (const one of sorted(queues)) visit(one, 0);
  return rows;
}

function sorted(queues: readonly Queue[]): Queue[] {
  return [...queues].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

export interface Share {
  resource: string;
  used: number;
  wanted: number;
  promised: number;
  reserved: number;
  guarantee: number;
  deserved: number | undefined;
  limit: number | undefined;
  // What it uses beyond what it deserves.
  borrowed: number;
}

export function sharesOf(queue: Queue): Share[] {
  return (queue.status.resources ?? []).map((one) => {
    const used = amount(one.used);
    const deserved = readQuantity(one.deserved);
    return {
      resource: one.resource,
      used,
      wanted: amount(one.wanted),
      promised: amount(one.promised),
      reserved: amount(one.reserved),
      guarantee: amount(one.guarantee),
      deserved,
      limit: readQuantity(one.limit),
      borrowed: deserved === undefined ? 0 : Math.max(0, used - deserved),
    };
  });
}
