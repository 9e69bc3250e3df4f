import { ActionIcon, Button, Checkbox } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import type { HotkeyItem } from "@mantine/hooks";
import { IconKeyboard } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ReviewDecision, ReviewLine } from "../../api/types";
import { reviewLinesCSV } from "../../lib/tables/reviews";
import type { ReviewLineOrder } from "../../lib/use-server-sort";
import { useWords } from "../../lib/use-words";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import type { Pages } from "../TableDownload";
import { InfoDialog } from "../InfoDialog";
import approvals from "../approvals/Approvals.module.css";
import { DecideDialog } from "./DecideDialog";
import classes from "./Reviews.module.css";
import { LineAccess, LineState, RecommendationBadge, Use } from "./parts";

/** keys contains the keys of the lines. The keys for decisions open the dialog, in which the reason is given. */
const keys = ["j", "k", "x", "1", "2", "3", "?"] as const;
type Key = (typeof keys)[number];

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return target.type !== "checkbox";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

function KeysDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <InfoDialog title={t("accessReview.keys")} size="sm" onClose={onClose}>
      <dl className={approvals.keyList} data-testid="keys-help">
        {keys.map((key) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{t(`accessReview.key.${key}`)}</dd>
          </div>
        ))}
      </dl>
    </InfoDialog>
  );
}

interface Props {
  review: string;
  lines: ReviewLine[];
  /** The query of the lines, for those that were not read yet. */
  query: Pages<ReviewLine>;
  /** The orders in which the server returns the lines. */
  orders?: readonly ReviewLineOrder[];
}

/** ReviewLines lists the lines of a review. Those that the reader may decide have buttons, and can be selected and decided together. */
export function ReviewLines({ review, lines, query, orders }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const [picked, setPicked] = useState<ReadonlySet<number>>(new Set());
  const [at, setAt] = useState<number>();
  const [asking, setAsking] = useState<{ decision: ReviewDecision; lines: ReviewLine[] }>();
  const [help, setHelp] = useState(false);
  const rows = useRef<HTMLDivElement>(null);
  const possible = lines.filter(({ canDecide }) => canDecide);
  const chosen = possible.filter(({ line }) => picked.has(line));
  const current = at === undefined ? undefined : possible[Math.min(at, possible.length - 1)];

  useEffect(() => {
    rows.current?.querySelector<HTMLElement>(`[data-line="${current?.line}"]`)?.scrollIntoView({ block: "nearest" });
  }, [current?.line]);

  const toggle = (line: number) =>
    setPicked((before) => {
      const next = new Set(before);
      if (!next.delete(line)) next.add(line);
      return next;
    });
  const move = (by: number) => setAt((before) => Math.max(0, Math.min(possible.length - 1, before === undefined ? 0 : before + by)));
  const decide = (decision: ReviewDecision) => {
    const of = chosen.length > 0 ? chosen : current ? [current] : [];
    if (of.length > 0) setAsking({ decision, lines: of });
  };
  const actions: Record<Key, () => void> = {
    j: () => move(1), k: () => move(-1), x: () => current && toggle(current.line),
    "1": () => decide("keep"), "2": () => decide("shorten"), "3": () => decide("revoke"), "?": () => setHelp(true),
  };
  const press = (key: Key) => (event: KeyboardEvent) => {
    if (asking || help || possible.length === 0 || isTyping(event.target)) return;
    event.preventDefault();
    actions[key]();
  };
  const own = { preventDefault: false };
  useHotkeys([...keys.map((key): HotkeyItem => [key, press(key), own]), ["shift+?", press("?"), own]], []);

  const deciding = possible.length > 0;
  const columns: Column<ReviewLine>[] = [
    ...(deciding
      ? [{
          key: "choose", header: t("accessReview.column.choose"), silent: true,
          cell: (row: ReviewLine) => row.canDecide && <Checkbox size="sm" checked={picked.has(row.line)} onChange={() => toggle(row.line)} aria-label={words.access(row)} data-testid={`choose-${row.line}`} />,
        }]
      : []),
    { key: "access", header: t("accessReview.column.access"), cell: (row) => <span data-line={row.line} className={current?.line === row.line ? classes.current : undefined} aria-current={current?.line === row.line || undefined}><LineAccess line={row} /></span> },
    { key: "use", header: t("accessReview.column.use"), cell: (row) => <Use evidence={row.evidence} /> },
    { key: "recommendation", header: t("accessReview.column.recommendation"), nowrap: true, cell: (row) => <RecommendationBadge recommendation={row.recommendation} /> },
    { key: "reviewers", header: t("accessReview.column.reviewers"), cell: (row) => <span className={classes.muted}>{row.reviewers.length > 0 ? words.names(row.reviewers.map(({ displayName }) => displayName), 3) : t("accessReview.nobody")}</span> },
    {
      key: "decision", header: t("accessReview.column.decision"),
      cell: (row) => (
        <span className={classes.access}>
          {row.state !== "open" && <LineState line={row} />}
          {row.canDecide && (
            <span className={classes.actions}>
              {row.state === "open" && <Button size="compact-xs" variant="default" onClick={() => setAsking({ decision: "keep", lines: [row] })} data-testid={`keep-${row.line}`}>{t("accessReview.keep")}</Button>}
              <Button size="compact-xs" variant="default" onClick={() => setAsking({ decision: "shorten", lines: [row] })} data-testid={`shorten-${row.line}`}>{t("accessReview.shorten")}</Button>
              <Button size="compact-xs" variant="light" color="red" onClick={() => setAsking({ decision: "revoke", lines: [row] })} data-testid={`revoke-${row.line}`}>{t("accessReview.revoke")}</Button>
            </span>
          )}
          {row.state === "open" && !row.canDecide && <LineState line={row} />}
        </span>
      ),
    },
  ];
  const recommended = (decision: ReviewDecision) => possible.filter((line) => line.state === "open" && line.recommendation === decision);
  return (
    <div ref={rows}>
      {deciding && (
        <div className={classes.filters}>
          <Checkbox size="sm" label={t("accessReview.selectAll", { count: possible.length })} checked={chosen.length > 0 && chosen.length === possible.length} indeterminate={chosen.length > 0 && chosen.length < possible.length} onChange={() => setPicked(chosen.length > 0 ? new Set() : new Set(possible.map(({ line }) => line)))} data-testid="choose-all" />
          {(["revoke", "shorten", "keep"] as const).map((decision) => recommended(decision).length > 0 && (
            <Button key={decision} size="compact-xs" variant="subtle" onClick={() => setPicked(new Set(recommended(decision).map(({ line }) => line)))} data-testid={`choose-${decision}`}>
              {t("accessReview.selectRecommended", { decision: t(`accessReview.recommendation.${decision}`) })}
            </Button>
          ))}
          <ActionIcon variant="subtle" color="gray" onClick={() => setHelp(true)} aria-label={t("accessReview.keys")}>
            <IconKeyboard size={17} aria-hidden />
          </ActionIcon>
        </div>
      )}
      <DataTable query={query} csv={reviewLinesCSV} orders={orders} label={t("accessReview.column.access")} columns={columns} rows={lines} rowKey={({ review: of, line }) => `${of}/${line}`} rowTestId={({ line }) => `line-${line}`} testId="review-lines" />
      {chosen.length > 0 && (
        <div className={classes.bulk} role="region" aria-label={t("accessReview.selected", { count: chosen.length })} data-testid="selection">
          <span>{t("accessReview.selected", { count: chosen.length })}</span>
          <Button size="xs" variant="subtle" color="gray" onClick={() => setPicked(new Set())}>{t("accessReview.selectNone")}</Button>
          <Button size="xs" variant="default" onClick={() => decide("keep")} data-testid="bulk-keep">{t("accessReview.keep")}</Button>
          <Button size="xs" variant="default" onClick={() => decide("shorten")} data-testid="bulk-shorten">{t("accessReview.shorten")}</Button>
          <Button size="xs" color="red" onClick={() => decide("revoke")} data-testid="bulk-revoke">{t("accessReview.revoke")}</Button>
        </div>
      )}
      {help && <KeysDialog onClose={() => setHelp(false)} />}
      {asking && (
        <DecideDialog
          review={review}
          decision={asking.decision}
          lines={asking.lines}
          onClose={(done) => {
            setAsking(undefined);
            if (done) setPicked(new Set());
          }}
        />
      )}
    </div>
  );
}
