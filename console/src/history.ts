// What happened to one gang, from what the API keeps.

import { type Decision, type Gang, gangOf, placeOf } from "./objects.ts";
import { writeInstant } from "./time.ts";

export interface Happening {
  time: string;
  title: string;
  details: string;
  // It has not happened yet.
  expected?: true;
}

// Submission, decisions, conditions and the expected start, the oldest first.
export function happenings(gang: Gang, decisions: readonly Decision[]): Happening[] {
  const found: Happening[] = [];
  const created = gang.metadata.creationTimestamp;
  if (created) found.push({ time: created, title: "Seen by Tutti", details: "" });
  for (const { status } of decisionsOf(gang, decisions)) {
    const pods = `${status.count} ${status.count === 1 ? "pod" : "pods"}`;
    const nodes = new Set((status.pods ?? []).map((one) => one.node).filter(Boolean)).size;
    found.push({
      time: status.time,
      title: status.action === "Bind" ? `Decided to bind ${pods}` : `Decided to evict ${pods} for it`,
      details: [
        nodes ? `on ${nodes} ${nodes === 1 ? "node" : "nodes"}` : "", status.domain ? `in ${status.domain}` : "",
        status.attempt ? `attempt ${status.attempt}` : "", status.message || status.reason || "",
      ].filter(Boolean).join(", "),
    });
  }
  for (const one of gang.status.conditions ?? []) {
    if (!one.lastTransitionTime) continue;
    const ended = one.status === "False" ? " (no longer)" : "";
    found.push({
      time: one.lastTransitionTime, title: `${one.type}${ended}`,
      details: [one.reason, one.message].filter(Boolean).join(": "),
    });
  }
  const { earliest, latest, basis = "" } = gang.status.expectedStart ?? {};
  if (earliest && latest) {
    const details = `at the latest ${writeInstant(latest)}${basis && `: ${basis}`}`;
    found.push({ time: earliest, title: "Expected to start", details, expected: true });
  }
  return found.sort((a, b) => Date.parse(a.time) - Date.parse(b.time));
}

export function decisionsOf(gang: Gang, decisions: readonly Decision[]): Decision[] {
  const byPlace = new Map([[placeOf(gang), gang]]);
  return decisions.filter((one) => gangOf(one, byPlace));
}

// Members with their nodes, of the newest decision about each pod of the gang.
export function placedMembers(gang: Gang, decisions: readonly Decision[]): { name: string; node: string }[] {
  const nodes = new Map<string, { name: string; node: string }>();
  for (const { status } of decisionsOf(gang, decisions)) {
    if (status.action !== "Bind") continue;
    for (const pod of status.pods ?? []) nodes.set(pod.name, { name: pod.name, node: pod.node ?? "" });
  }
  const present = new Set((gang.status.placement ?? []).map((one) => one.node));
  return [...nodes.values()].filter((one) => present.has(one.node)).sort((a, b) => (a.name < b.name ? -1 : 1));
}
