import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { asApiError } from "../../api/client";
import type { PreviewItem, TicketPreview } from "../../api/types";
import { byChain } from "../../lib/items";
import { useWords } from "../../lib/use-words";
import { ModeBadge } from "../Badge";
import { ObjectChanges } from "../ObjectChanges";
import { ClusterChips } from "../ClusterChips";
import { Deciders } from "../Deciders";
import { ImpactAnswer } from "../evidence/Impact";
import type { ImpactQuery } from "../evidence/Impact";
import { ErrorState, Notice, RowsSkeleton } from "../Feedback";
import tables from "../Tables.module.css";
import classes from "./Request.module.css";

/** NameOf returns the display name of the item at a position of the request. */
export type NameOf = (position: number) => string;

function Chains({ items, nameOf }: { items: PreviewItem[]; nameOf: NameOf }) {
  const { t } = useTranslation();
  const words = useWords();
  const planned = items.filter((item) => !item.problem);
  const chains = byChain(planned);
  if (chains.length === 0) return null;
  return (
    <div className={classes.block}>
      <h3 className={classes.blockTitle}>{t("request.preview.deciders")}</h3>
      {chains.map(({ steps, items: of }) => (
        <div key={of.map((item) => item.position).join()} className={classes.chain}>
          {chains.length > 1 && <p className={classes.chainOf}>{words.list(of.map((item) => nameOf(item.position)))}</p>}
          <Deciders steps={steps} />
        </div>
      ))}
    </div>
  );
}

function Existing({ item }: { item: PreviewItem }) {
  const { t } = useTranslation();
  const words = useWords();
  return (item.existing ?? []).map((access) => (
    <p key={`${access.policy}/${access.sid}`} className={classes.muted}>
      {t("request.preview.already", { actions: words.list(access.actions) })} <code className={tables.code}>{access.sid}</code>
      {access.ticket && access.ticketVisible !== false && (
        <>
          {" · "}
          <Link to={`/tickets/${access.ticket}`}>{access.ticket}</Link>
        </>
      )}
    </p>
  ));
}

/** Item shows what is known about one item: existing access, refused connections, protection, and why it cannot be requested. */
function Item({ item, name, onRemove }: { item: PreviewItem; name: string | undefined; onRemove: (() => void) | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const { denied24h: denied, protection, onboards, duplicate, problem } = item;
  return (
    <div className={classes.item} data-testid={`preview-item-${item.position}`}>
      {name && <strong>{name}</strong>}
      {problem && (
        <div role="alert" data-testid="preview-problem">
          <Notice>{words.message(problem.fields?.[0]?.message ?? problem.message)}</Notice>
        </div>
      )}
      {duplicate && (
        <Notice testId="preview-duplicate">
          {t("request.duplicate", { ticket: duplicate })} <Link to={`/tickets/${duplicate}`}>{t("request.openDuplicate")}</Link>
          {onRemove && (
            <>
              {" · "}
              <button type="button" className={tables.linkButton} onClick={onRemove}>
                {t("request.leaveOut")}
              </button>
            </>
          )}
        </Notice>
      )}
      {item.kind === "extend" && item.target && (
        <p data-testid="preview-extends">
          {t("request.preview.extends")} <Link to={`/tickets/${item.target.ticket}`}>{item.target.ticket}</Link>
        </p>
      )}
      {item.kind !== "extend" && <Existing item={item} />}
      {denied !== undefined && <p className={classes.muted} data-testid="preview-denied">{denied === 0 ? t("request.preview.deniedNone") : t("request.preview.denied", { count: denied })}</p>}
      {onboards && (
        <p data-testid="preview-onboards">
          {t("request.preview.onboards")} <ModeBadge mode={onboards} /> {t(`request.preview.onboardsAs.${onboards}`)}
        </p>
      )}
      {protection && (
        <p className={classes.people}>
          <ModeBadge mode={protection.effectiveMode} />
          <ClusterChips clusters={protection.clusters} />
        </p>
      )}
    </div>
  );
}

/** isKnown reports whether there is anything to show besides the change. For classes, for example, there is not. */
const isKnown = ({ problem, duplicate, target, existing, denied24h, protection, onboards }: PreviewItem): boolean =>
  problem !== undefined || duplicate !== undefined || target !== undefined || (existing ?? []).length > 0 || denied24h !== undefined || protection !== undefined || onboards !== undefined;

interface FactsProps {
  preview: TicketPreview;
  nameOf: NameOf;
  onRemove: ((position: number) => void) | undefined;
}

function Facts({ preview, nameOf, onRemove }: FactsProps) {
  const { t } = useTranslation();
  const several = preview.items.length > 1;
  return (
    <>
      <Chains items={preview.items} nameOf={nameOf} />
      {preview.items.some(isKnown) && (
        <div className={classes.block}>
          <h3 className={classes.blockTitle}>{t("request.preview.now")}</h3>
          {preview.items.filter(isKnown).map((item) => (
            <Item key={item.position} item={item} name={several ? nameOf(item.position) : undefined} onRemove={several && onRemove ? () => onRemove(item.position) : undefined} />
          ))}
        </div>
      )}
      {preview.change && (
        <div className={classes.block}>
          <h3 className={classes.blockTitle}>{t("request.preview.change")}</h3>
          <ObjectChanges change={preview.change} compact />
        </div>
      )}
    </>
  );
}

/** PreviewQuery is the part of a query for a preview that RequestPreview uses. */
export interface PreviewQuery {
  data: TicketPreview | undefined;
  error: unknown;
  isFetching: boolean;
  isPlaceholderData: boolean;
  refetch: () => unknown;
}

/** Replay shows who would lose and who would gain access. A failed replay does not block the request. */
function Replay({ query }: { query: ImpactQuery }) {
  const { t } = useTranslation();
  return (
    <div className={`${classes.block} ${classes.replay}`} aria-busy={!query.data && !query.error} data-testid="preview-impact">
      <h3 className={classes.blockTitle}>{t("impact.short")}</h3>
      <ImpactAnswer query={query} />
    </div>
  );
}

interface Props {
  /** isRequested reports whether the form has enough values for a preview. */
  isRequested: boolean;
  query: PreviewQuery;
  /** The replay; absent for requests that do not decide about connections. */
  impact?: ImpactQuery;
  nameOf: NameOf;
  onRemove?: (position: number) => void;
  empty: string;
}

/** RequestPreview shows what the request would do if it were submitted. */
export function RequestPreview({ isRequested, query, impact, nameOf, onRemove, empty }: Props) {
  const { t } = useTranslation();
  const { status } = asApiError(query.error);
  return (
    <aside className={classes.preview} aria-label={t("request.preview.title")} aria-busy={query.isFetching} data-testid="preview">
      <h2 className={classes.previewTitle}>{t("request.preview.title")}</h2>
      {!isRequested && <p className={classes.muted}>{empty}</p>}
      {isRequested && query.error ? <ErrorState error={query.error} title={status >= 400 && status < 500 ? t("request.preview.failed") : t("error.title")} onRetry={() => void query.refetch()} /> : null}
      {isRequested && !query.error && (query.data ? <div className={query.isPlaceholderData ? classes.stale : undefined}><Facts preview={query.data} nameOf={nameOf} onRemove={onRemove} /></div> : <RowsSkeleton rows={3} />)}
      {isRequested && !query.error && impact && <Replay query={impact} />}
    </aside>
  );
}

