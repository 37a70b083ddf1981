// A colour for each name, the same on every page and for every user.

export function colourOf(name: string): string {
  let hash = 2166136261;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 16777619);
  // The last bits of this hash differ little between similar names.
  hash = Math.imul(hash ^ (hash >>> 15), 2246822519);
  const mixed = (hash ^ (hash >>> 13)) >>> 0;
  return `hsl(${mixed % 360} ${50 + (mixed >>> 9) % 30}% ${40 + (mixed >>> 17) % 16}%)`;
}
