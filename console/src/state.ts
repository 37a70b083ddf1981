// What all pages share: the session, the address, and hooks to read them.

import { createContext } from "preact";
import { useContext, useEffect, useReducer, useState } from "preact/hooks";
import { addressOf, readRoute, type Route } from "./address.ts";
import type { Api } from "./api.ts";
import { Feed, type Snapshot } from "./feed.ts";
import type { ApiObject, Decision, Gang, Instance, Node, PodShape, Queue } from "./objects.ts";
import { QueueHistory } from "./queue_history.ts";

export class Session {
  readonly gangs: Feed<Gang>;
  readonly queues: Feed<Queue>;
  readonly queueHistory = new QueueHistory();
  readonly nodes: Feed<Node>;
  readonly podShapes: Feed<PodShape>;
  readonly instances: Feed<Instance>;
  readonly decisions: Feed<Decision>;

  constructor(readonly api: Api) {
    this.gangs = new Feed(api, "gangs", true);
    this.queues = new Feed(api, "queues", false, (items) => this.queueHistory.take(items, Date.now()));
    this.nodes = new Feed(api, "nodes");
    this.podShapes = new Feed(api, "podshapes");
    this.instances = new Feed(api, "instances");
    this.decisions = new Feed(api, "decisions");
  }

  stop(): void {
    for (const feed of [this.gangs, this.queues, this.nodes, this.podShapes, this.instances, this.decisions]) feed.stop();
  }
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("there is no session");
  return session;
}

export function useFeed<T extends ApiObject>(feed: Feed<T>): Snapshot<T> {
  const [, redraw] = useReducer((count: number, _: void) => count + 1, 0);
  useEffect(() => feed.subscribe(() => redraw()), [feed]);
  return feed.snapshot;
}

// The present time, renewed each second: for ages.
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => {
    const changed = () => setRoute(readRoute(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

// Change a parameter of the address without a step in the browser's history.
export function setQuery(key: string, value: string): void {
  const { page, parts, query } = readRoute(location.hash);
  if (value) query.set(key, value);
  else query.delete(key);
  const text = query.toString();
  history.replaceState(null, "", `${addressOf(page, ...parts)}${text ? `?${text}` : ""}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
