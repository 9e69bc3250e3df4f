import { useTranslation } from "react-i18next";
import type { PolicyOrigin } from "../../api/types";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import classes from "./Govern.module.css";

/** By which way a policy came, and by whose hand. */
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
