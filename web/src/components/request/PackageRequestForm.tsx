import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { usePackage } from "../../api/packages";
import type { AccessPackage } from "../../api/types";
import { durationOf, packageRequestBody } from "../../lib/packages";
import { durationError } from "../../lib/request";
import type { DurationValue } from "../../lib/request";
import { usePlan } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { useWords } from "../../lib/use-words";
import { DurationField } from "../DurationField";
import { ApplicationSelect } from "../EntitySelect";
import { Loaded, Notice } from "../Feedback";
import classes from "./Request.module.css";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";

function Form({ of }: { of: AccessPackage }) {
  const { t } = useTranslation();
  const words = useWords();
  const [application, setApplication] = useState("");
  const [duration, setDuration] = useState<DurationValue>(() => durationOf(of.durationSeconds));
  const [reason, setReason] = useState("");
  const body = packageRequestBody(of, application, duration);
  const { query, isRequested } = usePlan(body);
  const { tried, submit, sending, error } = useRequest();
  const wrong = durationError(duration, of.durationSeconds);
  const nameOf = (position: number) => query.data?.items.find((item) => item.position === position)?.resource?.title ?? "";
  const left = of.resources.length - (query.data?.items.length ?? of.resources.length);
  return (
    <RequestFrame
      restored={false}
      reason={reason}
      onReason={setReason}
      tried={tried}
      onSubmit={() => submit(body, reason)}
      sending={sending}
      error={error}
      atField={error ? asApiError(error).itemMessage(0) !== undefined && query.data?.items[0]?.problem !== undefined : false}
      aside={<RequestPreview isRequested={isRequested} query={query} nameOf={nameOf} empty={t("packages.previewEmpty")} />}
    >
      <p className={classes.muted}>{t("packages.requestIntro", { title: of.title, version: of.version, resources: words.list(of.resources.map(({ resource }) => resource.title)) })}</p>
      {isRequested && left > 0 && <Notice testId="package-left-out">{t("packages.leftOut", { count: left })}</Notice>}
      <ApplicationSelect mine label={t("packages.application")} description={t("request.applicationHint")} required value={application} onChange={setApplication} error={tried && application === "" && t("packages.error.application")} nothingFound={t("applications.noMatch")} testId="package-application" />
      <DurationField
        limited={of.durationSeconds !== undefined}
        value={duration}
        onChange={setDuration}
        description={of.durationSeconds === undefined ? undefined : t("packages.atMost", { duration: words.duration(of.durationSeconds) })}
        error={wrong ? (wrong === "cap" ? t("packages.error.cap", { duration: words.duration(of.durationSeconds) }) : t("packages.error.range")) : undefined}
      />
    </RequestFrame>
  );
}

/** PackageRequestForm requests an access package for an application. */
export function PackageRequestForm({ name }: { name: string }) {
  const { t } = useTranslation();
  const query = usePackage(name);
  return <Loaded query={query}>{(of) => (of.can.request ? <Form key={of.version} of={of} /> : <Notice testId="package-archived">{t("packages.archivedNote")}</Notice>)}</Loaded>;
}
