// The body of a watch: chunks of bytes in, events out.

import type { ApiObject } from "./objects.ts";

export interface WatchEvent<T extends ApiObject> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: T & { code?: number; message?: string };
}

// As long as the API server lets an object be, and more than a gang is.
const LINE_CHARACTERS_MAX = 4 * 2 ** 20;

export class WatchLines<T extends ApiObject> {
  private readonly decoder = new TextDecoder();
  private rest = "";

  // The events that are complete with this chunk. Throws if a line is too long or not JSON.
  take(chunk: Uint8Array): WatchEvent<T>[] {
    const lines = (this.rest + this.decoder.decode(chunk, { stream: true })).split("\n");
    this.rest = lines.pop() ?? "";
    if (this.rest.length > LINE_CHARACTERS_MAX) throw new Error("the watch sent a line that is too long");
    return lines.filter(Boolean).map((line) => JSON.parse(line) as WatchEvent<T>);
  }
}
