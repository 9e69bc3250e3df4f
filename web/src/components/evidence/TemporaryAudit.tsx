import { Button, Text } from "@mantine/core";
import { IconEyeCheck } from "@tabler/icons-react";
import { useEffect, useState } from "react";
import { Trans, useTranslation } from "react-i18next";
import { useEndTemporaryAudit } from "../../api/flow-mutations";
import type { Resource, TemporaryAudit as Audit } from "../../api/types";
import { isAuditForm, timeLeft } from "../../lib/temporary-audit";
import { useKeptDialog } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { PersonName } from "../Names";
import { ReasonDialog } from "../ReasonDialog";
import tables from "../Tables.module.css";
import { RelativeTime, DayAndTime } from "../Time";
import { useToast } from "../toast-context";
import classes from "./Evidence.module.css";
import { TemporaryAuditDialog } from "./TemporaryAuditDialog";

/** TimeLeft counts down by the second. It is hidden from screen readers, because the exact end is next to it. */
export function TimeLeft({ until }: { until: string }) {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <span className={classes.left} aria-hidden data-testid="audit-left">
      {timeLeft(until, now)}
    </span>
  );
}

function EndDialog({ resource, onClose }: { resource: Resource; onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const end = useEndTemporaryAudit(resource.id);
  const { protection } = resource;
  const version = protection?.resourceVersion;
  return (
    <ReasonDialog
      title={t("audit.endTitle", { resource: resource.title })}
      text={<Text size="sm">{t("audit.endText", { mode: protection ? t(`mode.${protection.mode}`) : "", clusters: words.list(protection?.clusters.map((each) => each.cluster) ?? []) })}</Text>}
      confirm={t("audit.endNow")}
      danger
      pending={end.isPending}
      error={end.error}
      testId="audit-end"
      onConfirm={(reason) =>
        end.mutate({ reason, ...(version ? { resourceVersion: version } : {}) }, {
          onSuccess: () => {
            toast(t("audit.done.end", { resource: resource.title }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

function Running({ audit }: { audit: Audit }) {
  const { t } = useTranslation();
  return (
    <div>
      <p>
        <strong>{t("audit.running")}</strong> <DayAndTime at={audit.until} /> (<TimeLeft until={audit.until} />)
      </p>
      <p>
        {audit.guard ? t("audit.byGuard") : <Trans i18nKey="audit.by" components={{ p: <PersonName person={audit.by} /> }} />} {audit.reason}
      </p>
    </div>
  );
}

/** TemporaryAudit shows who turned on temporary audit, why, and until when, with the buttons to begin, extend and end it. */
export function TemporaryAudit({ resource }: { resource: Resource }) {
  const { t } = useTranslation();
  const { opened, draft, kept, open, close } = useKeptDialog(`audit ${resource.id}`, isAuditForm);
  const [ending, setEnding] = useState(false);
  const { protection } = resource;
  if (!protection) return null;
  const audit = protection.temporaryAudit;
  // Without an enforced member there is nothing to open.
  const enforces = protection.mode === "Enforce" || protection.clusters.some((each) => each.mode === "Enforce");
  const may = protection.canToggle ?? false;
  return (
    <>
      {audit?.active && (
        <div className={classes.audit} role="status" data-testid="temporary-audit">
          <Running audit={audit} />
          {may && (
            <div className={classes.buttons}>
              <Button size="xs" variant="default" onClick={open} data-testid="audit-extend">
                {t("audit.extend")}
              </Button>
              <Button size="xs" variant="default" onClick={() => setEnding(true)} data-testid="audit-end">
                {t("audit.endNow")}
              </Button>
            </div>
          )}
        </div>
      )}
      {audit && !audit.active && (
        <p className={tables.muted} data-testid="audit-ended">
          {t("audit.ended")} <RelativeTime at={audit.until} />. {audit.reason}
        </p>
      )}
      {!audit?.active && may && enforces && (
        <Button mb="sm" size="xs" variant="default" leftSection={<IconEyeCheck size={15} aria-hidden />} onClick={open} data-testid="audit-begin">
          {t("audit.open")}
        </Button>
      )}
      {opened && may && <TemporaryAuditDialog resource={resource} draft={draft} kept={kept} onClose={close} />}
      {ending && <EndDialog resource={resource} onClose={() => setEnding(false)} />}
    </>
  );
}
