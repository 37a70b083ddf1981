// What the cluster does now, and what keeps capacity from being used.

import { useMemo } from "preact/hooks";
import { addressOf } from "../address.ts";
import type { Snapshot } from "../feed.ts";
import type { Instance, PodShape } from "../objects.ts";
import { placeOf, titleOf } from "../objects.ts";
import { blockages, holders, keptCapacity, PHASES, phaseCounts, utilisation } from "../overview.ts";
import { byImportance, shortResource, writeQuantity } from "../quantities.ts";
import { useFeed, useNow, useSession } from "../state.ts";
import { age } from "../time.ts";
import { Amount, Bar, Empty, GangLink, NotShown, PhaseBadge, Scroll, Title } from "../widgets.tsx";

const ROWS_MAX = 10;

export function OverviewPage() {
  const session = useSession();
  const gangs = useFeed(session.gangs);
  const nodes = useFeed(session.nodes);
  const queues = useFeed(session.queues);
  const shapes = useFeed(session.podShapes);
  const instances = useFeed(session.instances);
  return (
    <>
      <Title of={nodes.freshness === "forbidden" ? [gangs, queues] : [gangs, nodes, queues]}>Overview</Title>
      <div class="panels">
        <div>
          <Phases gangs={gangs} />
          <Utilisation nodes={nodes} queues={queues} />
          <Shapes shapes={shapes} />
        </div>
        <div>
          <Blocked gangs={gangs} />
          <Holding gangs={gangs} />
          <Services instances={instances} />
        </div>
      </div>
    </>
  );
}

function Utilisation({ nodes, queues }: { nodes: Snapshot<import("../objects.ts").Node>; queues: Snapshot<import("../objects.ts").Queue> }) {
  const sums = useMemo(() => utilisation(nodes.items), [nodes.items]);
  const kept = useMemo(() => keptCapacity(queues.items), [queues.items]);
  return (
    <section>
      <h2>Capacity</h2>
      <NotShown of={nodes} />
      {byImportance(sums.keys()).map((resource) => {
        const { total, requested, unusable } = sums.get(resource)!;
        const { promised, reserved } = kept.get(resource) ?? { promised: 0, reserved: 0 };
        const write = (value: number) => writeQuantity(resource, value);
        const remarks = [
          `${write(requested)} of ${write(total)} requested`, unusable ? `${write(unusable)} on nodes that take no pods` : "",
          promised ? `${write(promised)} promised to admitted gangs` : "", reserved ? `${write(reserved)} reserved for lost members` : "",
        ].filter(Boolean).join("; ");
        return (
          <div class="measure" key={resource}>
            <div title={resource}>{shortResource(resource)} <strong>{total ? Math.round((100 * requested) / total) : 0} %</strong></div>
            <Bar label={`${resource}: ${remarks}`} whole={total} parts={[
              { kind: "used", value: requested, title: "requested" }, { kind: "kept", value: promised + reserved, title: "kept" },
              { kind: "unusable", value: unusable, title: "unusable" },
            ]} />
            <small>{remarks}</small>
          </div>
        );
      })}
    </section>
  );
}

type OfGangs = { gangs: Snapshot<import("../objects.ts").Gang> };

function Phases({ gangs }: OfGangs) {
  const counts = useMemo(() => phaseCounts(gangs.items), [gangs.items]);
  return (
    <section>
      <h2>Gangs</h2>
      <ul class="counts">
        {PHASES.map((phase) => (
          <li key={phase}>
            <a href={`${addressOf("gangs")}?${new URLSearchParams({ phase })}`}><strong>{counts.get(phase)}</strong> <PhaseBadge phase={phase} /></a>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Blocked({ gangs }: OfGangs) {
  const found = useMemo(() => blockages(gangs.items), [gangs.items]);
  return (
    <section>
      <h2>Why gangs wait</h2>
      {gangs.freshness === "live" && !found.length && <Empty>No gang waits.</Empty>}
      {found.length > 0 && (
        <Scroll label="Why gangs wait">
          <table>
            <thead><tr><th scope="col">Reason</th><th scope="col" class="number">Gangs</th><th scope="col" class="number">Members</th><th scope="col">Largest</th></tr></thead>
            <tbody>
              {found.slice(0, ROWS_MAX).map((one) => (
                <tr key={one.reason}>
                  <th scope="row"><a href={`${addressOf("gangs")}?${new URLSearchParams({ search: one.reason })}`}>{one.reason}</a></th>
                  <td class="number">{one.gangs}</td><td class="number">{one.members}</td><td><GangLink place={placeOf(one.largest)} title={titleOf(one.largest)} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
}

function Holding({ gangs }: OfGangs) {
  const found = useMemo(() => holders(gangs.items, ROWS_MAX), [gangs.items]);
  if (!found.length) return null;
  return (
    <section>
      <h2>Gangs that hold what others lack</h2>
      <Scroll label="Gangs that hold what others lack">
        <table>
          <thead><tr><th scope="col">Gang</th><th scope="col" class="number">Waiting gangs</th><th scope="col" class="number">Their members</th></tr></thead>
          <tbody>
            {found.map((one) => (
              <tr key={one.gang}><th scope="row"><GangLink place={one.gang} /></th><td class="number">{one.gangs}</td><td class="number">{one.members}</td></tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

function Shapes({ shapes }: { shapes: Snapshot<PodShape> }) {
  return (
    <section>
      <h2>Largest gangs that fit now</h2>
      <NotShown of={shapes} />
      {shapes.freshness === "live" && shapes.items.length === 0 && <Empty>There are no gangs, so there are no shapes of pods to count.</Empty>}
      {shapes.items.length > 0 && (
        <Scroll label="Largest gangs that fit now">
          <table>
            <thead>
              <tr>
                <th scope="col">Pods that request</th><th scope="col" class="number">Anywhere</th><th scope="col" class="number">One domain</th>
                <th scope="col" class="number">One node</th><th scope="col" class="number">Unfragmented</th>
              </tr>
            </thead>
            <tbody>
              {shapes.items.slice(0, ROWS_MAX).map(({ metadata, status }) => (
                <tr key={metadata.name}>
                  <th scope="row">
                    {byImportance(Object.keys(status.requests)).map((one) => `${status.requests[one]} ${shortResource(one)}`).join(", ")}
                    {Object.entries(status.nodeSelector ?? {}).map(([key, value]) => <small key={key}> {key}={value}</small>)}
                  </th>
                  <td class="number">{status.fits}</td>
                  <td class="number">{status.tiers?.length ? Math.max(...status.tiers.map((one) => one.pods)) : "–"}</td>
                  <td class="number">{status.fitsOnNode}</td><td class="number"><Amount resource="pods" value={status.unfragmented} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
}

function Services({ instances }: { instances: Snapshot<Instance> }) {
  const now = useNow();
  return (
    <section>
      <h2>Services</h2>
      <NotShown of={instances} />
      <ul class="services">
        {instances.items.map(({ metadata, status }) => (
          <li key={metadata.name}>
            <span class={`badge ${status.ready ? "good" : "bad"}`}>{status.ready ? "ready" : "not ready"}</span> {status.service}
            {!status.active && " (standby)"} <small>{status.version}, {age(status.started, now)}</small>
            {(status.notReady ?? []).map((one) => <small key={one}> {one}</small>)}
          </li>
        ))}
      </ul>
    </section>
  );
}
