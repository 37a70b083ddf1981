// The API's objects, as docs/api.md and its OpenAPI document describe them. Fields are left out
// while they are empty. A test compares the names with the document.

export interface Metadata {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  creationTimestamp?: string;
}

export interface ApiObject {
  metadata: Metadata;
}

export interface ApiList<T> {
  metadata: { resourceVersion?: string; continue?: string };
  items: T[];
}

export interface NamedGangs {
  count: number;
  names?: string[];
}

export interface Refusal {
  reason: string;
  nodes?: number;
  resource?: string;
  missing?: string;
}

export interface RoleSearch {
  name: string;
  wanted: number;
  fitting: number;
  nodes: number;
  refusals?: Refusal[];
}

export interface Pending {
  reason: string;
  message: string;
  since?: string;
  roles?: RoleSearch[];
  quota?: Refusal[];
  ahead?: NamedGangs;
  holders?: NamedGangs;
}

// When a waiting gang is expected to start. Without the instants there is no estimate, and `basis` says why.
export interface ExpectedStart {
  earliest?: string;
  latest?: string;
  basis?: string;
  asOf?: string;
}

export interface Condition {
  type: string;
  status: "True" | "False";
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Placement {
  node: string;
  members: number;
}

export type Phase = "Pending" | "Inqueue" | "Starting" | "Running" | "Unknown" | "Completed";

export interface Gang extends ApiObject {
  status: {
    phase: Phase;
    // The object that its user created, as "jobset/train".
    owner?: string;
    // Its name for users: it is shown wherever a gang is named.
    title?: string;
    queue: string;
    dialect?: string;
    minMember: number;
    members: { total: number; pending: number; running: number; succeeded: number; failed: number };
    attempt?: number;
    conditions?: Condition[];
    pending?: Pending;
    // Its place among the waiting gangs of its queue.
    position?: number;
    expectedStart?: ExpectedStart;
    roles?: { name: string; members: number; placed: number; running: number }[];
    placement?: Placement[];
    domain?: string;
    nodePool?: string;
    traceId?: string;
    // Address of the trace in Jaeger's user interface.
    traceUrl?: string;
  };
}

export interface QueueAmounts {
  resource: string;
  used: string;
  wanted: string;
  promised: string;
  reserved: string;
  guarantee: string;
  deserved?: string;
  limit?: string;
}

export interface Queue extends ApiObject {
  status: {
    exists: boolean;
    state?: string;
    parent?: string;
    weight: number;
    priority: number;
    strict: boolean;
    reclaimable: boolean;
    gangs: { running: number; waiting: number; notAdmitted: number };
    resources?: QueueAmounts[];
    holders?: NamedGangs;
    message?: string;
    shared?: boolean;
  };
}

export interface Node extends ApiObject {
  status: {
    ready: boolean;
    schedulable: boolean;
    taints?: string[];
    // Labels about where it is.
    topology?: Record<string, string>;
    pods: number;
    members: number;
    resources?: { resource: string; allocatable: string; requested: string; free: string }[];
  };
}

export interface PodShape extends ApiObject {
  status: {
    requests: Record<string, string>;
    nodeSelector?: Record<string, string>;
    members: number;
    waiting: number;
    fits: number;
    node?: string;
    fitsOnNode: number;
    tiers?: { tier: string; domain?: string; pods: number }[];
    unfragmented: number;
  };
}

export interface Decision extends ApiObject {
  status: {
    action: "Bind" | "Evict";
    gang: string;
    gangId: string;
    title?: string;
    time: string;
    attempt: number;
    reason?: string;
    message?: string;
    count: number;
    pods?: { namespace: string; name: string; uid: string; node?: string; ended?: string; end?: string }[];
    domain?: string;
    traceId?: string;
  };
}

export interface Instance extends ApiObject {
  status: {
    service: string;
    ready: boolean;
    notReady?: string[];
    active: boolean;
    version: string;
    started?: string;
  };
}

export interface GangFit {
  name: string;
  members: number;
  fits: boolean;
  ever: boolean;
  needsNodes?: boolean;
  refused?: boolean;
  message?: string;
  placement?: Placement[];
  displaces?: { action: string; members: number; gangs: NamedGangs };
}

export interface Fit {
  status?: { fits: boolean; gangs?: GangFit[] };
}

export function placeOf(object: ApiObject): string {
  const { namespace, name } = object.metadata;
  return namespace ? `${namespace}/${name}` : name;
}

// A gang's namespace and its name for users.
export function titleOf(gang: Gang): string {
  return `${gang.metadata.namespace}/${gang.status.title || gang.metadata.name}`;
}

// The gang that a decision was made for; undefined: it is gone. An earlier gang of the same name has decisions, too: with
// another id, and made before this one was seen. Pods that get a group later keep their decisions under their former id, which
// are younger.
export function gangOf({ status }: Decision, byPlace: ReadonlyMap<string, Gang>): Gang | undefined {
  const gang = byPlace.get(status.gang);
  if (!gang || gang.metadata.uid === status.gangId) return gang;
  const { creationTimestamp } = gang.metadata;
  return Date.parse(status.time) >= (creationTimestamp ? Date.parse(creationTimestamp) : 0) ? gang : undefined;
}

// The gang of a name, or the gangs of an owner. Sentences and lists of the API name a gang by its owner if it has one, and add
// its API if a gang of another API has the same name.
export function gangsNamed(gangs: readonly Gang[], namespace: string, name: string): Gang[] {
  const near = gangs.filter((one) => one.metadata.namespace === namespace);
  const exact = near.filter((one) => one.metadata.name === name);
  if (exact.length) return exact;
  return near.filter(({ metadata, status }) => {
    const title = status.owner || metadata.name;
    return name === title || name === `${title} (${status.dialect})` || name === status.title;
  });
}
