import type { TrafficKind } from "../../lib/traffic-map";
import { formOf } from "./forms";
import { kindColors } from "./paint";

/** KindSwatch shows how the map draws a kind of traffic. */
export function KindSwatch({ kind }: { kind: TrafficKind }) {
  const width = kind === "granted" ? 1.25 : 6;
  const color = `var(${kindColors[kind]})`;
  const { dash, opening, tint } = formOf(kind, width);
  const rail = (width - opening) / 2;
  const line = (y: number, thickness: number, opacity: number) => <line x1={2} x2={kind === "refused" ? 28 : 32} y1={y} y2={y} stroke={color} strokeWidth={thickness} strokeDasharray={dash.join(" ") || undefined} opacity={opacity} />;
  return (
    <svg width={34} height={12} viewBox="0 0 34 12" aria-hidden focusable={false} data-form={dash.length > 0 ? "dashed" : opening === 0 ? "full" : tint > 0 ? "hollow" : "double"}>
      {opening === 0 ? (
        line(6, width, kind === "granted" ? 0.8 : 1)
      ) : (
        <>
          {line(6 - (opening + rail) / 2, rail, 1)}
          {tint > 0 && line(6, opening, tint)}
          {line(6 + (opening + rail) / 2, rail, 1)}
        </>
      )}
      {kind === "refused" && <line x1={30} x2={30} y1={1} y2={11} stroke={color} strokeWidth={2} strokeLinecap="round" />}
    </svg>
  );
}
