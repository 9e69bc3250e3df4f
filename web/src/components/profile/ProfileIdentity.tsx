import { useTranslation } from "react-i18next";
import type { Me } from "../../api/types";
import { useWords } from "../../lib/use-words";
import badge from "../Badge.module.css";
import { PersonName } from "../Names";
import { Section } from "../Page";
import classes from "./Profile.module.css";

/** ProfileIdentity shows the person, their roles and their groups. */
export function ProfileIdentity({ me }: { me: Me }) {
  const { t } = useTranslation();
  const words = useWords();
  return (
    <Section title={t("profile.who")} testId="identity">
      <dl className={classes.facts}>
        <dt>{t("profile.name")}</dt>
        <dd>{me.person.displayName}</dd>
        <dt>{t("profile.id")}</dt>
        <dd><code>{me.person.id}</code></dd>
        {me.person.email && (
          <>
            <dt>{t("profile.email")}</dt>
            <dd>{me.person.email}</dd>
          </>
        )}
        <dt>{t("profile.leader")}</dt>
        <dd>{me.leader ? <PersonName person={me.leader} /> : t("profile.noLeader")}</dd>
        <dt>{t("profile.groups")}</dt>
        <dd>{me.groups.length > 0 ? words.list(me.groups) : t("profile.noGroups")}</dd>
        <dt>{t("profile.roles")}</dt>
        <dd>
          <span className={classes.roles}>
            {me.roles.map((role) => (
              <span key={role} className={`${badge.badge} ${badge.idle}`}>{t(`role.${role}`)}</span>
            ))}
          </span>
          <span className={classes.hint}>{t("profile.rolesHint")}</span>
        </dd>
      </dl>
    </Section>
  );
}
