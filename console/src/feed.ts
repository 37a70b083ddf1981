// The present objects of one resource, kept current while a page shows them.

import { type Api, ApiError } from "./api.ts";
import { type ApiObject, placeOf } from "./objects.ts";

// "forbidden": the user has no right to them. That may last, and the rest of a page is current.
export type Freshness = "loading" | "live" | "failed" | "forbidden";

export interface Snapshot<T> {
  items: readonly T[];
  freshness: Freshness;
  // Why it failed, or a remark of the service; "": none.
  message: string;
}

const POLL_MS = 2_000;
// Changes within this time are shown at once: a busy cluster changes a hundred gangs a second. And
// while drawing takes long, a third of the time is spent on it.
const GATHER_MS = 50;
const GATHER_MS_MAX = 2_000;
const DRAWING_PART = 1 / 3;
const RETRY_MS_MAX = 15_000;
const WATCH_AGAIN_MS = 30_000;
// A page that is left and opened again within this time has its objects at once.
const LINGER_MS = 10_000;

export class Feed<T extends ApiObject> {
  snapshot: Snapshot<T> = { items: [], freshness: "loading", message: "" };
  private readonly listeners = new Set<() => void>();
  private readonly objects = new Map<string, T>();
  private ending: AbortController | undefined;
  private lingering: ReturnType<typeof setTimeout> | undefined;
  private gathering: ReturnType<typeof setTimeout> | undefined;
  private watchAgainAt = 0;
  private drawingMs = 0;

  // `onRead` is called with each list that was read, also with one that has not changed.
  constructor(
    private readonly api: Api, readonly resource: string, private readonly watched = false,
    private readonly onRead?: (items: readonly T[]) => void,
  ) {}

  // Keep the objects current, and call `listener` after changes, until the result is called.
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    clearTimeout(this.lingering);
    if (!this.ending) {
      this.ending = new AbortController();
      void this.run(this.ending.signal);
    }
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size) return;
      this.lingering = setTimeout(() => this.stop(), LINGER_MS);
    };
  }

  stop(): void {
    this.ending?.abort();
    this.ending = undefined;
  }

  private async run(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        await shown(signal);
        await this.follow(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        const wait = error instanceof ApiError ? error.retryAfterMs : 0;
        const forbidden = error instanceof ApiError && error.status === 403;
        if (forbidden) this.objects.clear();
        this.publish(forbidden ? "forbidden" : "failed", error instanceof Error ? error.message : String(error));
        // That the feed was stopped meanwhile ends the loop, and is no error.
        await pause(Math.max(wait, Math.min(RETRY_MS_MAX, 1000 * 2 ** failures)), signal).catch(() => undefined);
      }
    }
  }

  private async follow(signal: AbortSignal): Promise<void> {
    const listed = await this.api.list<T>(this.resource, signal);
    this.onRead?.(listed.items);
    this.objects.clear();
    for (const one of listed.items) this.objects.set(placeOf(one), one);
    if (this.snapshot.freshness !== "live" || !same(this.snapshot.items, listed.items) || this.snapshot.message !== listed.warning) {
      this.publish("live", listed.warning);
    }
    if (this.watched && Date.now() >= this.watchAgainAt) {
      await this.watch(listed.version, signal);
    } else {
      await pause(POLL_MS, signal);
    }
  }

  // Apply events until the watch ends, usually after two minutes, is refused, or the version is too old: then a list follows.
  // Events are not about rights: only a list has gangs that the user may see since a moment ago, and lacks those that he may not
  // see any more.
  private async watch(version: string, signal: AbortSignal): Promise<void> {
    try {
      const began = Date.now();
      for await (const events of this.api.watch<T>(this.resource, version, signal)) {
        for (const { type, object } of events) {
          if (type === "ERROR") throw new ApiError(object.code ?? 500, object.message ?? "the watch failed");
          if (type === "DELETED") this.objects.delete(placeOf(object));
          else if (type !== "BOOKMARK") this.objects.set(placeOf(object), object);
        }
        if (events.some((one) => one.type !== "BOOKMARK")) this.publishSoon();
      }
      // A server that ends watches at once is not asked in a loop.
      if (Date.now() - began < POLL_MS) await pause(POLL_MS, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      if (!(error instanceof ApiError && error.status === 410)) this.watchAgainAt = Date.now() + WATCH_AGAIN_MS;
    }
  }

  private publishSoon(): void {
    this.gathering ??= setTimeout(
      () => this.publish("live", this.snapshot.message),
      Math.min(GATHER_MS_MAX, Math.max(GATHER_MS, this.drawingMs / DRAWING_PART)),
    );
  }

  private publish(freshness: Freshness, message: string): void {
    clearTimeout(this.gathering);
    this.gathering = undefined;
    this.snapshot = { items: [...this.objects.values()], freshness, message };
    const began = performance.now();
    for (const listener of [...this.listeners]) listener();
    // Preact draws in a task before this one.
    setTimeout(() => { this.drawingMs = performance.now() - began; });
  }
}

function same<T>(before: readonly T[], after: readonly T[]): boolean {
  return before.length === after.length && before.every((one, at) => one === after[at]);
}

// Resolves when the page is visible. Rejects when the signal aborts, as `pause`.
async function shown(signal: AbortSignal): Promise<void> {
  while (globalThis.document?.hidden) await pause(500, signal);
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = () => {
      clearTimeout(timer);
      reject(new Error("ended"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", ended);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", ended, { once: true });
  });
}
