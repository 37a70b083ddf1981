// Instants and lengths of time, written short.

const UNITS: readonly [string, number][] = [["d", 86_400], ["h", 3_600], ["m", 60], ["s", 1]];

// Short: "45s", "12m", "3h20m", "1d3h", "30d".
export function writeDuration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 1) return "0s";
  const at = UNITS.findIndex(([, size]) => seconds >= size);
  const [unit, size] = UNITS[at]!;
  const whole = Math.floor(seconds / size);
  const next = UNITS[at + 1];
  if (!next || whole >= 10 || next[0] === "s") return `${whole}${unit}`;
  const rest = Math.floor((seconds - whole * size) / next[1]);
  return rest ? `${whole}${unit}${rest}${next[0]}` : `${whole}${unit}`;
}

export function age(instant: string | undefined, now: number): string {
  const at = Date.parse(instant ?? "");
  return Number.isNaN(at) ? "" : writeDuration(now - at);
}

// The spans until two instants, as "12m to 57m"; "0s": it has passed.
export function writeUntil(earliest: string, latest: string, now: number): string {
  const [first, last] = [earliest, latest].map((one) => writeDuration(Date.parse(one) - now));
  return first === last ? first! : `${first} to ${last}`;
}

export function writeInstant(instant: string | undefined): string {
  const at = Date.parse(instant ?? "");
  return Number.isNaN(at) ? "" : new Date(at).toISOString().replace("T", " ").replace(/\.\d+Z$/, "Z");
}
