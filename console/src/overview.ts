// What the overview adds up.

import type { Gang, Node, Phase, Queue } from "./objects.ts";
import { placeOf } from "./objects.ts";
import { amount } from "./quantities.ts";

export const PHASES: readonly Phase[] = ["Running", "Starting", "Unknown", "Inqueue", "Pending", "Completed"];

export interface Utilisation {
  resource: string;
  total: number;
  requested: number;
  // Free amounts of nodes that take no new pods.
  unusable: number;
}

export function utilisation(nodes: readonly Node[]): Map<string, Utilisation> {
  const found = new Map<string, Utilisation>();
  for (const { status } of nodes) {
    for (const one of status.resources ?? []) {
      const sum = found.get(one.resource) ?? { resource: one.resource, total: 0, requested: 0, unusable: 0 };
      sum.total += amount(one.allocatable);
      sum.requested += amount(one.requested);
      if (!status.ready || !status.schedulable) sum.unusable += Math.max(0, amount(one.free));
      found.set(one.resource, sum);
    }
  }
  return found;
}

export function phaseCounts(gangs: readonly Gang[]): Map<Phase, number> {
  const counts = new Map<Phase, number>(PHASES.map((phase) => [phase, 0]));
  for (const { status } of gangs) counts.set(status.phase, (counts.get(status.phase) ?? 0) + 1);
  return counts;
}

export interface Blockage {
  reason: string;
  gangs: number;
  members: number;
  // The gang with this reason that has most waiting members.
  largest: Gang;
}

// Why gangs wait, most waiting members first.
export function blockages(gangs: readonly Gang[]): Blockage[] {
  const found = new Map<string, Blockage>();
  for (const gang of gangs) {
    const reason = gang.status.pending?.reason;
    if (!reason) continue;
    const waiting = gang.status.members.pending;
    const one = found.get(reason) ?? { reason, gangs: 0, members: 0, largest: gang };
    one.gangs += 1;
    one.members += waiting;
    if (waiting > one.largest.status.members.pending) one.largest = gang;
    found.set(reason, one);
  }
  return [...found.values()].sort((a, b) => b.members - a.members || (a.reason < b.reason ? -1 : 1));
}

export interface Holder {
  gang: string;
  // Gangs that wait for what it holds, and their waiting members.
  gangs: number;
  members: number;
}

// The gangs that hold what most waiting members lack.
export function holders(gangs: readonly Gang[], most: number): Holder[] {
  const found = new Map<string, Holder>();
  for (const gang of gangs) {
    for (const name of gang.status.pending?.holders?.names ?? []) {
      const one = found.get(name) ?? { gang: name, gangs: 0, members: 0 };
      one.gangs += 1;
      one.members += gang.status.members.pending;
      found.set(name, one);
    }
  }
  return [...found.values()].sort((a, b) => b.members - a.members || (a.gang < b.gang ? -1 : 1)).slice(0, most);
}

export interface Kept {
  resource: string;
  promised: number;
  reserved: number;
}

// Free capacity that is kept for gangs, of all queues at the top of the tree.
export function keptCapacity(queues: readonly Queue[]): Map<string, Kept> {
  const names = new Set(queues.map((one) => one.metadata.name));
  const found = new Map<string, Kept>();
  for (const { status } of queues) {
    if (names.has(status.parent ?? "")) continue;
    for (const one of status.resources ?? []) {
      const sum = found.get(one.resource) ?? { resource: one.resource, promised: 0, reserved: 0 };
      sum.promised += amount(one.promised);
      sum.reserved += amount(one.reserved);
      found.set(one.resource, sum);
    }
  }
  return found;
}

// Gangs whose fields contain each word, whatever its case.
export function search(gangs: readonly Gang[], text: string): Gang[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [...gangs];
  return gangs.filter((gang) => {
    const { status } = gang;
    const fields = [placeOf(gang), status.owner, status.title, status.queue, status.phase, status.dialect, status.pending?.reason];
    const searched = fields.join(" ").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}
