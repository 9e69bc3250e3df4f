import { useTranslation } from "react-i18next";
import type { PolicyOrigin } from "../../api/types";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import classes from "./Govern.module.css";

/** PolicyOriginText shows how a policy was created, and by which field manager. */
export function PolicyOriginText({ origin, ticket }: { origin: PolicyOrigin; ticket?: string | undefined }) {
  const { t } = useTranslation();
  return (
    <span className={`${tables.stack} ${classes.origin}`}>
      <span title={origin.manager}>{t(`origin.${origin.kind}`)}</span>
      {origin.kind !== "portal" && origin.manager && <span className={tables.muted}>{origin.manager}</span>}
      {!ticket && origin.at && (
        <span className={tables.muted}>
          <RelativeTime at={origin.at} />
        </span>
      )}
    </span>
  );
}
