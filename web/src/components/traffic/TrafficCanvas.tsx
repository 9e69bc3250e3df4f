import { ActionIcon, VisuallyHidden } from "@mantine/core";
import { IconMinus, IconPlus, IconViewportWide } from "@tabler/icons-react";
import { useEffect, useEffectEvent, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { KeyboardEvent, PointerEvent, ReactNode } from "react";
import { useTranslation } from "react-i18next";
import type { TrafficMap } from "../../api/types";
import { bundleAt, canvasHeight, clampedScroll, fittedScroll, readingOrder, zoomedScroll } from "../../lib/traffic-map";
import type { Side, TrafficPicture, TrafficPlace, TrafficScroll } from "../../lib/traffic-map";
import { hoverText } from "../../lib/labels";
import { useWords } from "../../lib/use-words";
import { BundleFacts, useBundleText } from "./BundleFacts";
import { columnsOf, headerAt, middleOf, paletteOf, placeAt, trafficPainter, unitAt } from "./paint";
import type { Marks, Size } from "./paint";
import { useTitles } from "./titles";
import classes from "./Traffic.module.css";

const click = 4;
const cardWidth = 280;
/** assumed is the size until the canvas was measured. Nothing is drawn before, because drawing thousands of lines twice takes noticeable time. */
const assumed: Size = { width: 900, height: 520 };

interface Props {
  map: TrafficMap;
  picture: TrafficPicture;
  marks: Marks;
  /** The bundle that the URL selects. */
  selected: number | undefined;
  onBundle: (bundle: number | undefined) => void;
  onPlace: (place: TrafficPlace) => void;
  onFold: (side: Side, group: string) => void;
  /** Shown next to the zoom buttons. */
  children: ReactNode;
}

/** Target is what is under the pointer. */
type Target = { bundle: number; x: number; y: number } | { place: number } | { fold: { side: Side; group: string } } | undefined;

/** TrafficCanvas shows the picture. It can be moved and zoomed, and each line can be read with the pointer and with the keyboard. */
export function TrafficCanvas({ map, picture, marks, selected, onBundle, onPlace, onFold, children }: Props) {
  const { t, i18n } = useTranslation();
  const words = useWords();
  const spoken = useBundleText();
  const hint = useId();
  const canvas = useRef<HTMLCanvasElement>(null);
  const card = useRef<HTMLDivElement>(null);
  const titles = useTitles(picture);
  const [measured, setMeasured] = useState<Size>();
  const size = measured ?? assumed;
  const [moved, setMoved] = useState<{ of: TrafficPicture; scroll: TrafficScroll }>();
  const [target, setTarget] = useState<Target>();
  const [visited, setVisited] = useState<{ of: TrafficPicture; bundle: number }>();
  const [draw] = useState(trafficPainter);
  const drag = useRef<{ y: number; top: number; far: boolean }>(undefined);
  const sequence = useMemo(() => readingOrder(picture), [picture]);
  const labels = useMemo(() => {
    const compact = new Intl.NumberFormat(i18n.language, { notation: "compact", maximumFractionDigits: 1 });
    return picture.nodes.map((node, index) => ({ text: titles.nodes[index] ?? "", number: node.volume > 0 ? compact.format(node.volume) : "" }));
  }, [picture, titles, i18n.language]);
  const scroll = clampedScroll(picture, size.height, moved?.of === picture ? moved.scroll : fittedScroll(picture, size.height));
  const setScroll = (next: TrafficScroll) => setMoved({ of: picture, scroll: clampedScroll(picture, size.height, next) });
  const focused = visited?.of === picture ? visited.bundle : undefined;
  const hovered = target && "bundle" in target ? target.bundle : undefined;
  const near = target && "place" in target ? target.place : undefined;
  const nearName = near === undefined ? undefined : hoverText(titles.nodes[near] ?? "", picture.nodes[near]?.name ?? "");
  const active = near === undefined ? (hovered ?? focused ?? selected) : undefined;

  const paint = useEffectEvent(() => {
    const element = canvas.current;
    const context = element?.getContext("2d");
    if (!element || !context || !measured) return;
    const ratio = globalThis.devicePixelRatio || 1;
    const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
    if (element.width !== width || element.height !== height) [element.width, element.height] = [width, height];
    draw(context, { picture, labels, headers: titles.headers, scroll, size, palette: paletteOf(element), active: active !== undefined && active < picture.bundles.length ? active : undefined, near, marks });
  });
  // Draws after each change; changes in one frame are drawn once.
  useLayoutEffect(() => {
    const frame = requestAnimationFrame(() => paint());
    return () => cancelAnimationFrame(frame);
  });
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setMeasured({ width: element.clientWidth || assumed.width, height: element.clientHeight || assumed.height }));
    observer.observe(element);
    // The colors follow the scheme, which is an attribute of the root.
    const scheme = new MutationObserver(() => paint());
    scheme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-mantine-color-scheme"] });
    return () => {
      observer.disconnect();
      scheme.disconnect();
    };
  }, []);
  // React's own wheel listeners cannot keep the page from zooming.
  const wheel = useEffectEvent((event: WheelEvent) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    setScroll(zoomedScroll(picture, size.height, scroll, Math.exp(-event.deltaY / 300), event.offsetY));
  });
  useEffect(() => {
    const element = canvas.current;
    const listener = (event: WheelEvent) => wheel(event);
    element?.addEventListener("wheel", listener, { passive: false });
    return () => element?.removeEventListener("wheel", listener);
  }, []);

  // A picture may be higher than the window: what the keyboard visits is scrolled into view.
  useEffect(() => {
    if (focused !== undefined) card.current?.scrollIntoView({ block: "nearest" });
  }, [focused]);

  const at = (event: PointerEvent): Target => {
    const box = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const header = headerAt(picture, scroll, size, x, y);
    if (header) return { fold: { side: header.side, group: header.group } };
    const place = placeAt(picture, scroll, size, x, y);
    if (place !== undefined) return { place };
    const { left, right } = columnsOf(size.width);
    if (x <= left || x >= right) return undefined;
    const bundle = bundleAt(picture, (x - left) / (right - left), unitAt(scroll, y), 6 / scroll.k);
    return bundle === undefined ? undefined : { bundle, x, y };
  };
  const onMove = (event: PointerEvent) => {
    const from = drag.current;
    if (!from) {
      setTarget(at(event));
      return;
    }
    const dy = event.clientY - from.y;
    if (!from.far && Math.abs(dy) < click) return;
    from.far = true;
    setTarget(undefined);
    setScroll({ k: scroll.k, top: from.top - dy / scroll.k });
  };
  const onUp = (event: PointerEvent) => {
    const from = drag.current;
    drag.current = undefined;
    if (!from || from.far) return;
    const found = at(event);
    if (!found) onBundle(undefined);
    else if ("bundle" in found) onBundle(found.bundle);
    else if ("fold" in found) onFold(found.fold.side, found.fold.group);
    else {
      const place = picture.nodes[found.place];
      setTarget(undefined);
      if (place) onPlace(place);
    }
  };
  const zoom = (by: number) => setScroll(zoomedScroll(picture, size.height, scroll, by, size.height / 2));
  const fit = () => setMoved(undefined);
  const visit = (step: number | "first" | "last") => {
    const from = focused ?? selected;
    const rank = from === undefined ? -1 : sequence.indexOf(from);
    const next = step === "first" ? 0 : step === "last" ? sequence.length - 1 : Math.min(sequence.length - 1, Math.max(0, rank < 0 ? (step > 0 ? 0 : sequence.length - 1) : rank + step));
    const bundle = sequence[next];
    if (bundle === undefined) return;
    setTarget(undefined);
    setVisited({ of: picture, bundle });
    const { y } = middleOf(picture, scroll, size, bundle);
    if (y < 30 || y > size.height - 30) setScroll({ k: scroll.k, top: scroll.top + (y - size.height / 2) / scroll.k });
  };
  const page = (by: number) => setScroll({ k: scroll.k, top: scroll.top + (by * size.height * 0.8) / scroll.k });
  const keys: Record<string, () => void> = {
    ArrowUp: () => visit(-1),
    ArrowLeft: () => visit(-1),
    ArrowDown: () => visit(1),
    ArrowRight: () => visit(1),
    Home: () => visit("first"),
    End: () => visit("last"),
    PageUp: () => page(-1),
    PageDown: () => page(1),
    Enter: () => focused !== undefined && onBundle(focused),
    Escape: () => {
      setVisited(undefined);
      onBundle(undefined);
    },
    "+": () => zoom(1.3),
    "=": () => zoom(1.3),
    "-": () => zoom(1 / 1.3),
    "0": fit,
  };
  const onKey = (event: KeyboardEvent) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

  const shown = hovered ?? focused;
  const bundle = shown === undefined ? undefined : picture.bundles[shown];
  const pointer = target && "bundle" in target ? target : undefined;
  const middle = pointer ?? (shown === undefined ? undefined : middleOf(picture, scroll, size, shown));
  const place = middle && { x: pointer ? middle.x + 14 : middle.x - cardWidth / 2, y: Math.min(Math.max(middle.y, 0), size.height) };
  const ends = (of: { from: number; to: number }) => [titles.nodes[of.from] ?? "", titles.nodes[of.to] ?? ""] as const;
  return (
    <div className={classes.frame} data-testid="traffic-graph">
      <div className={classes.tools}>
        {children}
        <ActionIcon variant="default" onClick={() => zoom(1.3)} aria-label={t("accessMap.zoomIn")}>
          <IconPlus size={15} aria-hidden />
        </ActionIcon>
        <ActionIcon variant="default" onClick={() => zoom(1 / 1.3)} aria-label={t("accessMap.zoomOut")}>
          <IconMinus size={15} aria-hidden />
        </ActionIcon>
        <ActionIcon variant="default" onClick={fit} aria-label={t("accessMap.fit")} data-testid="traffic-fit">
          <IconViewportWide size={15} aria-hidden />
        </ActionIcon>
      </div>
      <div className={classes.heads} aria-hidden>
        <span style={{ width: columnsOf(size.width).left - 14 }}>{t("traffic.clients")}</span>
        <span style={{ width: columnsOf(size.width).left - 14 }}>{t("traffic.servers")}</span>
      </div>
      {/* The arrow keys visit the lines one by one, which screen readers leave to the page only in an application. */}
      {/* eslint-disable jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/no-noninteractive-tabindex -- see above */}
      <div
        role="application"
        tabIndex={0}
        className={classes.holder}
        aria-label={t("traffic.picture", { clients: words.number(picture.clients), servers: words.number(picture.servers), links: words.number(picture.bundles.length) })}
        aria-describedby={hint}
        onKeyDown={onKey}
        onBlur={() => setVisited(undefined)}
        data-scale={scroll.k.toFixed(3)}
        data-testid="traffic-picture"
      >
        <canvas
          ref={canvas}
          className={classes.canvas}
          style={{ height: canvasHeight(picture, globalThis.innerHeight) }}
          title={nearName}
          data-near={target !== undefined}
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            drag.current = { y: event.clientY, top: scroll.top, far: false };
          }}
          onPointerMove={onMove}
          onPointerUp={onUp}
          onPointerCancel={() => {
            drag.current = undefined;
            setTarget(undefined);
          }}
          onPointerLeave={() => setTarget(undefined)}
        />
        {bundle && place && (
          <div ref={card} className={classes.card} style={{ left: Math.min(Math.max(8, place.x), Math.max(8, size.width - cardWidth - 8)), ...(place.y > size.height / 2 ? { bottom: size.height - place.y + 12 } : { top: place.y + 12 }) }} data-testid="traffic-card">
            <strong>{ends(bundle).join(" → ")}</strong>
            <BundleFacts bundle={bundle} map={map} />
          </div>
        )}
      </div>
      {/* eslint-enable jsx-a11y/no-noninteractive-element-interactions, jsx-a11y/no-noninteractive-tabindex */}
      <VisuallyHidden role="status" data-testid="traffic-spoken">{focused !== undefined && bundle && spoken(bundle, ...ends(bundle))}</VisuallyHidden>
      <p className={classes.hint} id={hint}>{t("traffic.keys")}</p>
    </div>
  );
}
