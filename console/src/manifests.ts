// Manifests as a user pastes them: YAML or JSON, one document or several.

import { loadAll } from "js-yaml";

export const BYTES_MAX = 1_000_000;

// The objects of a text. Throws an Error with the reason for users.
export function readManifests(text: string): Record<string, unknown>[] {
  if (text.length > BYTES_MAX) throw new Error("the manifests must have at most 1 MB");
  const found: Record<string, unknown>[] = [];
  for (const document of loadAll(text) as unknown[]) {
    if (document === null || document === undefined) continue;
    if (typeof document !== "object" || Array.isArray(document)) throw new Error("a manifest must be an object");
    found.push(document as Record<string, unknown>);
  }
  if (!found.length) throw new Error("there is no manifest");
  return found;
}

// The namespace that the manifests name first; "": none does.
export function namespaceOf(manifests: readonly Record<string, unknown>[]): string {
  for (const one of manifests) {
    const namespace = (one["metadata"] as { namespace?: unknown } | undefined)?.namespace;
    if (typeof namespace === "string" && namespace) return namespace;
  }
  return "";
}
