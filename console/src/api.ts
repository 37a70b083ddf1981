// Requests to the API: with the token, with ETags, and watches.

import type { ApiList, ApiObject, Fit } from "./objects.ts";
import { WatchLines, type WatchEvent } from "./watch_lines.ts";

const ROOT = "/apis/visibility.tutti.dev/v1alpha1";
// A watch is opened again after this time, so that a broken connection is noticed.
const WATCH_S = 120;
const LIST_PAGES_MAX = 100;

export class ApiError extends Error {
  constructor(readonly status: number, message: string, readonly retryAfterMs = 0) {
    super(message);
  }
}

export interface Listed<T> {
  items: T[];
  version: string;
  // A remark of the service about all its answers; "": none.
  warning: string;
}

export class Api {
  // What was last answered at each path, with its ETag.
  private readonly known = new Map<string, { etag: string; listed: Listed<ApiObject> }>();

  // `token` "": requests have none. `onRefused` is called when the token is refused.
  constructor(private readonly token: string, private readonly onRefused: () => void) {}

  // Whether requests are authenticated. Throws ApiError for any other failure.
  async authenticates(): Promise<boolean> {
    try {
      await this.fetched(ROOT, {});
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return false;
      throw error;
    }
  }

  // All items of a list; the same object as before if nothing has changed. Throws ApiError.
  async list<T extends ApiObject>(resource: string, signal: AbortSignal): Promise<Listed<T>> {
    const path = `${ROOT}/${resource}`;
    const known = this.known.get(path);
    const headers: Record<string, string> = known ? { "If-None-Match": known.etag } : {};
    const response = await this.fetched(path, { headers, signal });
    if (response.status === 304 && known) return known.listed as Listed<T>;
    const listed = await this.read<T>(path, response, signal);
    const etag = response.headers.get("ETag");
    if (etag) this.known.set(path, { etag, listed });
    return listed;
  }

  private async read<T extends ApiObject>(path: string, first: Response, signal: AbortSignal): Promise<Listed<T>> {
    const warning = /"(.*)"/.exec(first.headers.get("Warning") ?? "")?.[1] ?? "";
    let page = (await first.json()) as ApiList<T>;
    const listed = { items: page.items, version: page.metadata.resourceVersion ?? "", warning };
    for (let at = 0; page.metadata.continue && at < LIST_PAGES_MAX; at++) {
      const next = `${path}?continue=${encodeURIComponent(page.metadata.continue)}`;
      page = (await (await this.fetched(next, { signal })).json()) as ApiList<T>;
      listed.items = listed.items.concat(page.items);
    }
    return listed;
  }

  async get<T extends ApiObject>(path: string, signal: AbortSignal): Promise<T> {
    return (await (await this.fetched(`${ROOT}/${path}`, { signal })).json()) as T;
  }

  // Events after a version, in groups as they arrive, until the server ends the watch. Throws ApiError.
  async *watch<T extends ApiObject>(
    resource: string, version: string, signal: AbortSignal,
  ): AsyncGenerator<WatchEvent<T>[]> {
    const query = new URLSearchParams({
      watch: "true", resourceVersion: version, allowWatchBookmarks: "true", timeoutSeconds: String(WATCH_S),
    });
    const whole = AbortSignal.any([signal, AbortSignal.timeout((WATCH_S + 10) * 1000)]);
    const response = await this.fetched(`${ROOT}/${resource}?${query}`, { signal: whole });
    const reader = response.body!.getReader();
    const lines = new WatchLines<T>();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield lines.take(value);
    }
  }

  async fit(namespace: string, manifests: unknown[], signal: AbortSignal): Promise<Fit> {
    const body = JSON.stringify({
      apiVersion: "visibility.tutti.dev/v1alpha1", kind: "Fit", metadata: { name: "question" }, spec: { manifests },
    });
    const path = `${ROOT}/namespaces/${encodeURIComponent(namespace)}/fits`;
    const headers = { "Content-Type": "application/json" };
    return (await (await this.fetched(path, { method: "POST", headers, body, signal })).json()) as Fit;
  }

  private async fetched(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set("Accept", "application/json");
    if (this.token) headers.set("Authorization", `Bearer ${this.token}`);
    let response: Response;
    try {
      response = await fetch(path, { ...init, headers, cache: "no-store", redirect: "error" });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError(0, "the server does not answer");
    }
    if (response.ok || response.status === 304) return response;
    const retryAfterMs = Number(response.headers.get("Retry-After") ?? 0) * 1000 || 0;
    if (response.status === 401 && this.token) this.onRefused();
    throw new ApiError(response.status, await reasonOf(response), retryAfterMs);
  }
}

// The message of a Status; of any other body, the status alone.
async function reasonOf(response: Response): Promise<string> {
  try {
    const status = (await response.json()) as { message?: unknown };
    if (typeof status.message === "string" && status.message) return status.message;
  } catch {
    // Not JSON: a proxy's page.
  }
  return `${response.status} ${response.statusText}`.trim();
}
