// Kubernetes' quantities: read for sums and bars, and written short.

const SUFFIXES: Record<string, number> = {
  n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};
const QUANTITY = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/;

// The value of a quantity; undefined for "" and for what is none.
export function readQuantity(text: string | undefined): number | undefined {
  const found = QUANTITY.exec(text ?? "");
  const factor = found ? SUFFIXES[found[2] ?? ""] : undefined;
  const value = found && factor !== undefined ? Number(found[1]) * factor : NaN;
  return Number.isFinite(value) ? value : undefined;
}

export function amount(text: string | undefined): number {
  return readQuantity(text) ?? 0;
}

export function isBytes(resource: string): boolean {
  return resource.endsWith("memory") || resource.endsWith("storage") || resource.includes("hugepages");
}

// Short, with a unit: "1.5 Ti", "250 m", "96 k".
export function writeQuantity(resource: string, value: number): string {
  const sign = value < 0 ? "−" : "";
  const size = Math.abs(value);
  if (size > 0 && size < 0.9995) return `${sign}${digits(size * 1000)} m`;
  // Up to 9,999 devices or cores are written in full: they are counted.
  const [step, units, least] = isBytes(resource) ? [1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], 1024] as const
    : [1000, ["", "k", "M", "G", "T", "P", "E"], 10_000] as const;
  let shown = size;
  let at = 0;
  while (shown >= (at ? step : least) * 0.9995 && at < units.length - 1) {
    shown /= step;
    at += 1;
  }
  return `${sign}${digits(shown)} ${units[at]}`.trimEnd();
}

function digits(value: number): string {
  return value >= 99.95 ? String(Math.round(value)) : String(Number(value.toFixed(1)));
}

// "nvidia.com/gpu" is "gpu" where space is scarce.
export function shortResource(resource: string): string {
  return resource.slice(resource.lastIndexOf("/") + 1);
}

// Devices first, then cpu and memory, then the rest; "pods" last.
export function byImportance(resources: Iterable<string>): string[] {
  const rank = (one: string) =>
    one.includes("/") ? 0 : one === "cpu" ? 1 : one === "memory" ? 2 : one === "pods" ? 4 : 3;
  return [...resources].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}
