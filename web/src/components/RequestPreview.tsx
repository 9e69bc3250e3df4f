import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { asApiError } from "../api/client";
import { usePreview } from "../api/queries";
import type { NewTicket, Step, TicketPreview } from "../api/types";
import { useWords } from "../lib/use-words";
import classes from "../pages/NewRequestPage.module.css";
import { ModeBadge } from "./Badge";
import { ClusterChips } from "./ClusterStates";
import { ErrorState, Notice, RowsSkeleton } from "./Feedback";
import { PersonName } from "./Names";
import { Statement } from "./Statement";
import tables from "./Tables.module.css";

function PreviewStep({ step }: { step: Step }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <li className={classes.step} data-testid={`preview-step-${step.name}`}>
      <span className={classes.people}>
        <span className={classes.stepName}>
          {words.step(step.name)}
          {step.approvers.length > 1 && `, ${t("request.preview.anyOf")}`}
        </span>
        {step.approvers.map((person) => (
          <PersonName key={person.id} person={person} />
        ))}
      </span>
      {step.note && <span className={classes.note}>{step.note}</span>}
    </li>
  );
}

function Facts({ preview }: { preview: TicketPreview }) {
  const { t } = useTranslation();
  const words = useWords();
  const existing = preview.existing ?? [];
  const denied = preview.denied24h;
  return (
    <>
      {preview.duplicate && (
        <div className={classes.block}>
          <Notice testId="preview-duplicate">
            {t("request.duplicate", { ticket: preview.duplicate })} <Link to={`/tickets/${preview.duplicate}`}>{t("request.openDuplicate")}</Link>
          </Notice>
        </div>
      )}
      <div className={classes.block}>
        <h3 className={classes.blockTitle}>{t("request.preview.deciders")}</h3>
        <ol className={classes.steps}>
          {preview.steps.map((step) => (
            <PreviewStep key={step.name} step={step} />
          ))}
        </ol>
      </div>
      <div className={classes.block}>
        <h3 className={classes.blockTitle}>{t("request.preview.existing")}</h3>
        {existing.length === 0 && <p className={classes.muted}>{t("request.preview.existingNone")}</p>}
        {existing.map((access) => (
          <p key={`${access.policy}/${access.sid}`} className={classes.muted}>
            <code className={tables.code}>{access.sid}</code> {words.list(access.actions)}
            {access.ticket && access.ticketVisible !== false && (
              <>
                {" · "}
                <Link to={`/tickets/${access.ticket}`}>{access.ticket}</Link>
              </>
            )}
          </p>
        ))}
        <p className={classes.muted} data-testid="preview-denied">
          {denied === undefined ? t("request.preview.deniedUnknown") : denied === 0 ? t("request.preview.deniedNone") : t("request.preview.denied", { count: denied })}
        </p>
      </div>
      <div className={classes.block}>
        <h3 className={classes.blockTitle}>{t("request.preview.protection")}</h3>
        {preview.protection ? (
          <span className={classes.people}>
            <ModeBadge mode={preview.protection.effectiveMode} />
            <ClusterChips clusters={preview.protection.clusters} />
          </span>
        ) : (
          <p className={classes.muted}>{t("request.preview.notOnboarded")}</p>
        )}
      </div>
      {preview.statement && (
        <div className={classes.block}>
          <h3 className={classes.blockTitle}>{t("request.preview.statement")}</h3>
          <Statement yaml={preview.statement} label={t("request.preview.statement")} />
        </div>
      )}
    </>
  );
}

/** What submitting would do, as long as it is not submitted. */
export function RequestPreview({ body }: { body: NewTicket | undefined }) {
  const { t } = useTranslation();
  const query = usePreview(body);
  return (
    <aside className={classes.preview} aria-label={t("request.preview.title")} aria-busy={query.isFetching} data-testid="preview">
      <h2 className={classes.previewTitle}>{t("request.preview.title")}</h2>
      {body === undefined && <p className={classes.muted}>{t("request.preview.empty")}</p>}
      {body !== undefined && query.error && (
        <ErrorState
          error={query.error}
          title={asApiError(query.error).status >= 400 && asApiError(query.error).status < 500 ? t("request.preview.failed") : t("error.title")}
          onRetry={() => void query.refetch()}
        />
      )}
      {body !== undefined && !query.error && (query.data ? <Facts preview={query.data} /> : <RowsSkeleton rows={3} />)}
    </aside>
  );
}
