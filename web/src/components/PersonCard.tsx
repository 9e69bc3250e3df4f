import { Skeleton } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { usePerson } from "../api/queries";
import type { Person } from "../api/types";
import { useWords } from "../lib/use-words";
import { ErrorState } from "./Feedback";
import { Avatar } from "./Avatar";
import classes from "./Names.module.css";

/** PersonCard shows a person's title, leader and groups. */
export function PersonCard({ person }: { person: Person }) {
  const { t } = useTranslation();
  const words = useWords();
  const query = usePerson(person.id);
  const detail = query.data;
  const about = detail?.person ?? person;
  return (
    <div className={classes.card} data-testid="person-card">
      <div className={classes.cardHead}>
        <Avatar name={about.displayName} size={36} />
        <div>
          <strong>{about.displayName}</strong>
          <small>{about.title ?? about.id}</small>
        </div>
      </div>
      {about.email && <a href={`mailto:${about.email}`}>{about.email}</a>}
      {query.isPending && <Skeleton height={34} />}
      {query.error && <ErrorState error={query.error} onRetry={() => void query.refetch()} />}
      {detail && (
        <dl>
          {detail.leader && (
            <>
              <dt>{t("person.leader")}</dt>
              <dd>{detail.leader.displayName}</dd>
            </>
          )}
          {detail.groups.length > 0 && (
            <>
              <dt>{t("person.groups")}</dt>
              <dd>{words.list(detail.groups.map((group) => group.displayName))}</dd>
            </>
          )}
        </dl>
      )}
      <Link to={`/requests?view=all&requester=${encodeURIComponent(person.id)}`}>{t("person.requests")}</Link>
    </div>
  );
}
