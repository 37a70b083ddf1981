// All nodes as tiles, filled by the gangs or queues on them.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { colourOf } from "../colours.ts";
import type { PageProps } from "../main.tsx";
import { type ColourBy, groupsOf, layOut, mainResources, type Tile, TITLE_PX, topologyKeys } from "../node_map.ts";
import { shortResource } from "../quantities.ts";
import { setQuery, useFeed, useSession } from "../state.ts";
import { Choice, Empty, GangLink, Title } from "../widgets.tsx";

export function MapPage({ route }: PageProps) {
  const session = useSession();
  const nodes = useFeed(session.nodes);
  const gangs = useFeed(session.gangs);
  const resources = useMemo(() => mainResources(nodes.items), [nodes.items]);
  const labels = useMemo(() => topologyKeys(nodes.items), [nodes.items]);
  const resource = route.query.get("resource") ?? resources[0] ?? "";
  const by: ColourBy = route.query.get("by") === "queue" ? "queue" : "gang";
  const label = route.query.get("group") ?? labels[0] ?? "";
  const groups = useMemo(
    () => groupsOf(nodes.items, gangs.items, resource, by, label === "none" ? "" : label), [nodes.items, gangs.items, resource, by, label]);
  const [ground, width, height] = useSize();
  const layout = useMemo(() => layOut(groups.map((one) => one.tiles.length), width, height), [groups, width, height]);
  const tiles = useMemo(() => groups.flatMap((one) => one.tiles), [groups]);
  const [chosen, setChosen] = useState("");
  const selected = tiles.find((one) => one.node.metadata.name === chosen);
  const move = (event: KeyboardEvent) => {
    const at = tiles.findIndex((one) => one.node.metadata.name === chosen);
    const columns = layout.boxes[0]?.columns ?? 1;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    const next = event.key === "Home" ? 0 : event.key === "End" ? tiles.length - 1 : step && at + step;
    if (next === undefined || !tiles[next]) return;
    event.preventDefault();
    setChosen(tiles[next].node.metadata.name);
    ground.current?.querySelectorAll<HTMLElement>("button")[next]?.focus();
  };
  return (
    <>
      <Title of={[nodes, gangs]}>Cluster map</Title>
      <div class="filters">
        <Choice label="Resource" value={resource} options={resources} onChoice={(one) => setQuery("resource", one)} />
        <Choice label="Colour by" value={by} options={["gang", "queue"]} onChoice={(one) => setQuery("by", one)} />
        {labels.length > 0 && (
          <Choice label="Group by" value={label} options={[...labels, "none"]} onChoice={(one) => setQuery("group", one)} />
        )}
      </div>
      {nodes.freshness === "live" && !tiles.length && <Empty>There are no nodes.</Empty>}
      <div class="map" ref={ground} role="group" aria-label={`${tiles.length} nodes; arrow keys move`} onKeyDown={move}>
        <div style={{ height: `${layout.height}px`, position: "relative" }}>
          {groups.map((group, at) => {
            const box = layout.boxes[at]!;
            return (
              <div key={group.name} class="box" style={{ left: `${box.x}px`, top: `${box.y}px`, width: `${box.width}px` }}>
                {groups.length > 1 && <div class="title" style={{ height: `${TITLE_PX}px` }} title={group.name}>{group.name || "(no label)"}</div>}
                {group.tiles.map((tile) => (
                  <TileButton key={tile.node.metadata.name} tile={tile} side={layout.side} resource={resource}
                    pressed={tile === selected} focusable={selected ? tile === selected : tile === tiles[0]} onChoose={setChosen} />
                ))}
              </div>
            );
          })}
        </div>
      </div>
      <div aria-live="polite">{selected ? <Details tile={selected} /> : <p class="empty">Choose a node to see what is on it.</p>}</div>
    </>
  );
}

function useSize(): [{ current: HTMLDivElement | null }, number, number] {
  const ground = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState<[number, number]>([0, 0]);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setSize([Math.floor(entry.contentRect.width), Math.floor(entry.contentRect.height)]);
    });
    observer.observe(ground.current!);
    return () => observer.disconnect();
  }, []);
  return [ground, ...size];
}

function TileButton({ tile, side, resource, pressed, focusable, onChoose }: {
  tile: Tile; side: number; resource: string; pressed: boolean; focusable: boolean; onChoose: (name: string) => void;
}) {
  const { name } = tile.node.metadata;
  const used = tile.segments.reduce((sum, one) => sum + one.part, 0);
  const label = `${name}: ${Math.round(used * 100)} % of ${shortResource(resource)} requested, ${tile.gangs.length} gangs`
    + (tile.usable ? "" : ", takes no new pods");
  return (
    <button type="button" class={tile.usable ? "tile" : "tile unusable"} aria-label={label} aria-pressed={pressed} title={label}
      tabIndex={focusable ? 0 : -1} onClick={() => onChoose(name)}
      style={{ width: `${side - 1}px`, height: `${side - 1}px`, backgroundImage: fill(tile) }} />
  );
}

// Stripes of the segments, from the bottom up.
function fill(tile: Tile): string {
  let at = 0;
  const stops = tile.segments.map(({ name, part }) => {
    const from = at;
    at += part * 100;
    return `${name ? colourOf(name) : "var(--wanted)"} ${from.toFixed(1)}% ${at.toFixed(1)}%`;
  });
  return stops.length ? `linear-gradient(to top, ${stops.join(", ")}, transparent ${at.toFixed(1)}%)` : "none";
}

function Details({ tile }: { tile: Tile }) {
  const { metadata, status } = tile.node;
  return (
    <section>
      <h2>{metadata.name}</h2>
      <dl class="facts">
        {(status.resources ?? []).map((one) => (
          <><dt title={one.resource}>{shortResource(one.resource)}</dt><dd>{one.requested} of {one.allocatable} requested, {one.free} free</dd></>
        ))}
        {!tile.usable && <><dt>State</dt><dd>{status.ready ? "cordoned" : "not ready"}</dd></>}
        {status.taints && <><dt>Taints</dt><dd>{status.taints.join(", ")}</dd></>}
        {Object.entries(status.topology ?? {}).map(([key, value]) => <><dt>{key}</dt><dd>{value}</dd></>)}
        <dt>Gangs</dt>
        <dd>
          <ul class="inline">
            {tile.gangs.map((one) => (
              <li key={one.gang}><span class="swatch" style={{ background: colourOf(one.gang) }} /> <GangLink place={one.gang} title={one.title} /> ({one.members})</li>
            ))}
          </ul>
          {!tile.gangs.length && "none that you may see"}
        </dd>
      </dl>
    </section>
  );
}
