// One gang: why it waits, its members, what it waits for, and its history.

import { useEffect, useMemo } from "preact/hooks";
import { Feed } from "../feed.ts";
import { happenings, placedMembers } from "../history.ts";
import type { PageProps } from "../main.tsx";
import { type Decision, type Gang, gangsNamed, type Pending, placeOf, type Refusal, type RoleSearch } from "../objects.ts";
import { addressOf, webAddress } from "../address.ts";
import { useFeed, useNow, useSession } from "../state.ts";
import { age, writeInstant, writeUntil } from "../time.ts";
import { Empty, Gangs, PhaseBadge, Scroll, Title } from "../widgets.tsx";

const ROWS_MAX = 200;

export function GangPage({ route }: PageProps) {
  const session = useSession();
  const [namespace = "", name = ""] = route.parts;
  const known = useFeed(session.gangs);
  const feed = useMemo(
    () => new Feed<Decision>(session.api, `namespaces/${encodeURIComponent(namespace)}/decisions`), [session, namespace]);
  useEffect(() => () => feed.stop(), [feed]);
  const decisions = useFeed(feed);
  const found = gangsNamed(known.items, namespace, name);
  const [gang] = found;
  return (
    <>
      <Title of={[known, decisions]}><small>{namespace}/</small>{found.length === 1 && gang ? gang.status.title || gang.metadata.name : name}</Title>
      {!gang && known.freshness === "live" && <Empty>There is no such gang, or you may not see it. It may have ended.</Empty>}
      {gang && found.length === 1 && <GangView gang={gang} decisions={decisions.items} />}
      {found.length > 1 && <Gangs named={{ count: found.length, names: found.map(placeOf) }} />}
    </>
  );
}

function GangView({ gang, decisions }: { gang: Gang; decisions: readonly Decision[] }) {
  const now = useNow();
  const { status, metadata } = gang;
  const { members } = status;
  return (
    <>
      {status.pending && <p class="why">{status.pending.message}</p>}
      <dl class="facts">
        <dt>Phase</dt><dd><PhaseBadge phase={status.phase} /></dd>
        <dt>Members</dt>
        <dd>{members.running} running, {members.pending} pending{members.succeeded ? `, ${members.succeeded} succeeded` : ""}
          {members.failed ? `, ${members.failed} failed` : ""} of {members.total}; at least {status.minMember}</dd>
        <dt>Queue</dt><dd><a href={`${addressOf("queues")}?${new URLSearchParams({ queue: status.queue })}`}>{status.queue}</a></dd>
        <Expected status={status} now={now} />
        <dt>Age</dt><dd>{age(metadata.creationTimestamp, now)}</dd>
        <Fact name="Owner" value={status.owner} /><Fact name="API" value={status.dialect} /><Fact name="Domain" value={status.domain} />
        <Fact name="Node pool" value={status.nodePool} />
        <Fact name="Attempt" value={status.attempt ? String(status.attempt) : ""} />
        <Trace id={status.traceId} address={webAddress(status.traceUrl)} />
      </dl>
      {status.pending && <Waits pending={status.pending} now={now} />}
      <Members gang={gang} decisions={decisions} />
      <History gang={gang} decisions={decisions} />
    </>
  );
}

function Fact({ name, value }: { name: string; value: string | undefined }) {
  return value ? <><dt>{name}</dt><dd>{value}</dd></> : null;
}

function Expected({ status, now }: { status: Gang["status"]; now: number }) {
  const { position, expectedStart } = status;
  if (!expectedStart) return null;
  const { earliest, latest, basis, asOf } = expectedStart;
  return (
    <>
      {position && <><dt>Position in queue</dt><dd>{position}</dd></>}
      <dt>Expected to start</dt>
      <dd>{earliest && latest
        ? `in ${writeUntil(earliest, latest, now)} (${writeInstant(earliest)} to ${writeInstant(latest)})${basis ? `: ${basis}` : ""}`
        : `no estimate: ${basis}`}{asOf && <small> as of {age(asOf, now)} ago</small>}</dd>
    </>
  );
}

function Trace({ id, address }: { id: string | undefined; address: string | undefined }) {
  if (!id) return null;
  return <><dt>Trace</dt><dd>{address ? <a href={address} rel="noreferrer">{id} in Jaeger</a> : id}</dd></>;
}

function Waits({ pending, now }: { pending: Pending; now: number }) {
  return (
    <section>
      <h2>What it waits for</h2>
      <dl class="facts">
        <dt>Reason</dt><dd>{pending.reason}</dd>
        {pending.since && <><dt>Since</dt><dd>{age(pending.since, now)}</dd></>}
        {pending.ahead && <><dt>Ahead of it</dt><dd><Gangs named={pending.ahead} /></dd></>}
        {pending.holders && <><dt>Hold what it lacks</dt><dd><Gangs named={pending.holders} /></dd></>}
        {pending.quota && <><dt>Quota</dt><dd><Refusals all={pending.quota} /></dd></>}
      </dl>
    </section>
  );
}

function Refusals({ all }: { all: readonly Refusal[] }) {
  return (
    <ul class="inline">
      {all.map((one, at) => (
        <li key={at}>{one.nodes ? `${one.nodes} × ` : ""}{one.reason}{one.missing ? ` (${one.missing} ${one.resource} missing)` : ""}</li>
      ))}
    </ul>
  );
}

function Members({ gang, decisions }: { gang: Gang; decisions: readonly Decision[] }) {
  const searches = new Map<string, RoleSearch>((gang.status.pending?.roles ?? []).map((one) => [one.name, one]));
  const roles = new Map((gang.status.roles ?? []).map((one) => [one.name, one]));
  const names = [...new Set([...roles.keys(), ...searches.keys()])].sort();
  const placed = useMemo(() => placedMembers(gang, decisions), [gang, decisions]);
  const placement = gang.status.placement ?? [];
  return (
    <section>
      <h2>Members</h2>
      {!names.length && <Empty>It has no pods yet.</Empty>}
      {names.length > 0 && (
        <Scroll label="Members by role">
          <table>
            <thead>
              <tr>
                <th scope="col">Role</th><th scope="col" class="number">Members</th><th scope="col" class="number">Placed</th>
                <th scope="col" class="number">Running</th><th scope="col" class="number">Would fit now</th><th scope="col">Nodes refuse because</th>
              </tr>
            </thead>
            <tbody>
              {names.map((name) => {
                const [role, found] = [roles.get(name), searches.get(name)];
                return (
                  <tr key={name}>
                    <th scope="row">{name || "(none)"}</th>
                    <td class="number">{role?.members ?? "–"}</td><td class="number">{role?.placed ?? "–"}</td>
                    <td class="number">{role?.running ?? "–"}</td>
                    <td class="number">{found ? `${found.fitting} of ${found.wanted}` : "–"}</td>
                    <td>{found?.refusals && <Refusals all={found.refusals} />}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </Scroll>
      )}
      {placement.length > 0 && <h3>On {placement.length} {placement.length === 1 ? "node" : "nodes"}</h3>}
      {placed.length > 0 ? (
        <Scroll label="Members and their nodes">
          <table>
            <thead><tr><th scope="col">Pod</th><th scope="col">Node</th></tr></thead>
            <tbody>{placed.slice(0, ROWS_MAX).map((one) => <tr key={one.name}><th scope="row">{one.name}</th><td>{one.node}</td></tr>)}</tbody>
          </table>
        </Scroll>
      ) : (
        <ul class="inline">{placement.slice(0, ROWS_MAX).map((one) => <li key={one.node}>{one.node} ({one.members})</li>)}</ul>
      )}
      {Math.max(placed.length, placement.length) > ROWS_MAX && <p>The first {ROWS_MAX} are shown.</p>}
    </section>
  );
}

function History({ gang, decisions }: { gang: Gang; decisions: readonly Decision[] }) {
  const found = useMemo(() => happenings(gang, decisions), [gang, decisions]);
  const begin = Date.parse(found[0]?.time ?? "");
  return (
    <section>
      <h2>History</h2>
      <ol class="history">
        {found.map((one, at) => (
          <li key={at} class={one.expected ? "expected" : undefined}>
            <time dateTime={one.time}>{writeInstant(one.time)}</time> <small>+{((Date.parse(one.time) - begin) / 1000).toFixed(1)} s</small>
            {" "}<strong>{one.title}</strong> {one.details}
          </li>
        ))}
      </ol>
    </section>
  );
}
