// Requests to the API: with the token, with ETags, and watches.

import type { ApiList, ApiObject, Fit } from "./objects.ts";
import { WatchLines, type WatchEvent } from "./watch_lines.ts";

const ROOT = "/apis/visibility.tutti.dev/v1alpha1";
// A watch is opened again after this time, so that a broken connection is noticed.
const WATCH_S = 120;
const LIST_PAGES_MAX = 100;

// Why a request has no user. "token wanted": it had no token, and the API takes one. "token refused": the cluster does not
// accept its token, which may be one of a proxy. "login wanted": a proxy did not pass it on; a browser that loads the page is
// led to its login.
export type NoUser = "token wanted" | "token refused" | "login wanted";

export class ApiError extends Error {
  constructor(readonly status: number, message: string, readonly retryAfterMs = 0, readonly noUser?: NoUser) {
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

  // `token` "": requests have none, as a proxy may add one. `onUser` is called with each answer: why the request had no user;
  // undefined: it had one.
  constructor(private readonly token: string, private readonly onUser: (why: NoUser | undefined) => void) {}

  // Ask something that every user may. Throws ApiError.
  async check(): Promise<void> {
    await this.fetched(ROOT, {});
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
      // The API redirects nothing. A proxy does, to its login, which this request could not follow.
      response = await fetch(path, { ...init, headers, cache: "no-store", redirect: "manual" });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError(0, "the server does not answer");
    }
    const failure = await failureOf(response);
    if (!failure || failure.noUser) this.onUser(failure?.noUser);
    if (failure) throw failure;
    return response;
  }
}

// Why a response is not an answer of the API; undefined: it is one.
export async function failureOf(response: Response): Promise<ApiError | undefined> {
  const login = (status: number) => new ApiError(status, "the login has ended", 0, "login wanted");
  if (response.type === "opaqueredirect") return login(response.status);
  if (response.status === 304) return undefined;
  // A page instead of data is one of a proxy.
  if (response.ok) return isJson(response) ? undefined : login(response.status);
  const message = await messageOf(response);
  const retryAfterMs = Number(response.headers.get("Retry-After") ?? 0) * 1000 || 0;
  if (response.status !== 401) return new ApiError(response.status, message || statusLine(response), retryAfterMs);
  if (!message) return login(401);
  // RFC 6750: a request without a token has no error.
  const refused = /\berror="?invalid_token/.test(response.headers.get("WWW-Authenticate") ?? "");
  return new ApiError(401, message, 0, refused ? "token refused" : "token wanted");
}

function isJson(response: Response): boolean {
  return /^application\/json\b/.test(response.headers.get("Content-Type") ?? "");
}

// The message of a Status; "": the body is none.
async function messageOf(response: Response): Promise<string> {
  try {
    const { kind, message } = (await response.json()) as { kind?: unknown; message?: unknown };
    return kind === "Status" && typeof message === "string" ? message : "";
  } catch {
    // Not JSON: a proxy's page.
    return "";
  }
}

function statusLine(response: Response): string {
  return `${response.status} ${response.statusText}`.trim();
}
