// The map of nodes: which tiles there are, what is on each, and where they are drawn.

import { type Gang, type Node, placeOf, titleOf } from "./objects.ts";
import { amount, byImportance } from "./quantities.ts";

export interface Segment {
  // Gang ("namespace/name") or queue; "": pods that are in no gang that the user sees.
  name: string;
  // Part of the node's amount, from 0 to 1.
  part: number;
}

export interface Tile {
  node: Node;
  usable: boolean;
  segments: Segment[];
  gangs: { gang: string; title: string; members: number }[];
}

export interface Group {
  name: string;
  tiles: Tile[];
}

export type ColourBy = "gang" | "queue";

// The resource that the map shows, if the user chooses none: devices, else cpu.
export function mainResources(nodes: readonly Node[]): string[] {
  const known = new Set<string>();
  for (const one of nodes) for (const { resource } of one.status.resources ?? []) known.add(resource);
  return byImportance(known);
}

// Keys of labels by which nodes can be grouped.
export function topologyKeys(nodes: readonly Node[]): string[] {
  const known = new Set<string>();
  for (const one of nodes) for (const key of Object.keys(one.status.topology ?? {})) known.add(key);
  return [...known].sort();
}

// Tiles in groups of a label's value, or one group; both by name.
export function groupsOf(
  nodes: readonly Node[], gangs: readonly Gang[], resource: string, by: ColourBy, label: string,
): Group[] {
  const onNode = new Map<string, { gang: Gang; members: number }[]>();
  for (const gang of gangs) {
    for (const { node, members } of gang.status.placement ?? []) {
      const known = onNode.get(node);
      if (known) known.push({ gang, members });
      else onNode.set(node, [{ gang, members }]);
    }
  }
  const groups = new Map<string, Group>();
  for (const node of [...nodes].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const name = label ? (node.status.topology?.[label] ?? "") : "";
    const group = groups.get(name) ?? { name, tiles: [] };
    group.tiles.push(tileOf(node, onNode.get(node.metadata.name) ?? [], resource, by));
    groups.set(name, group);
  }
  return [...groups.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

// The API has the number of each gang's members on a node, not what each requests: what is
// requested is divided by members.
function tileOf(node: Node, members: { gang: Gang; members: number }[], resource: string, by: ColourBy): Tile {
  const { status } = node;
  const amounts = (status.resources ?? []).find((one) => one.resource === resource);
  const whole = amount(amounts?.allocatable);
  const used = whole > 0 ? Math.min(1, amount(amounts?.requested) / whole) : 0;
  const known = members.reduce((sum, one) => sum + one.members, 0);
  // Device plugins and the like are pods without devices: they get a part only if there are no members.
  const others = known ? Math.max(0, status.members - known) : status.pods;
  const parts = new Map<string, number>();
  for (const one of members) {
    const name = by === "gang" ? placeOf(one.gang) : one.gang.status.queue;
    parts.set(name, (parts.get(name) ?? 0) + one.members);
  }
  if (others) parts.set("", others);
  return {
    node,
    usable: status.ready && status.schedulable,
    segments: [...parts].map(([name, count]) => ({ name, part: (used * count) / (known + others) })),
    gangs: members.map((one) => ({ gang: placeOf(one.gang), title: titleOf(one.gang), members: one.members })),
  };
}

export interface Box {
  x: number;
  y: number;
  columns: number;
  width: number;
}

export interface Layout {
  // Side of a tile in pixels, its gap included.
  side: number;
  boxes: Box[];
  height: number;
}

export const TITLE_PX = 16;
const GAP_PX = 8;
const SIDE_PX_MAX = 44;
const SIDE_PX_MIN = 5;

// The largest tiles with which groups of these sizes fit into a width and height; with the
// smallest ones they may be higher.
export function layOut(sizes: readonly number[], width: number, height: number): Layout {
  const titled = sizes.length > 1;
  for (let side = SIDE_PX_MAX; side > SIDE_PX_MIN; side--) {
    const found = shelves(sizes, width, side, titled);
    if (found && found.height <= height) return found;
  }
  return shelves(sizes, Math.max(width, SIDE_PX_MIN), SIDE_PX_MIN, titled)!;
}

// Boxes from left to right in rows; undefined: the width is too small for a tile.
function shelves(sizes: readonly number[], width: number, side: number, titled: boolean): Layout | undefined {
  const columnsMax = Math.floor(width / side);
  if (columnsMax < 1) return undefined;
  const boxes: Box[] = [];
  let [x, y, shelf] = [0, 0, 0];
  for (const size of sizes) {
    // One group takes the whole width; of several, each is about twice as wide as it is high.
    const columns = Math.max(1, Math.min(columnsMax, titled ? Math.ceil(Math.sqrt(size * 2)) : size));
    const box = { columns, width: columns * side, height: Math.ceil(size / columns) * side + (titled ? TITLE_PX : 0) };
    if (x > 0 && x + box.width > width) {
      y += shelf + GAP_PX;
      x = shelf = 0;
    }
    boxes.push({ x, y, columns, width: box.width });
    x += box.width + GAP_PX;
    shelf = Math.max(shelf, box.height);
  }
  return { side, boxes, height: y + shelf };
}
