import { useTranslation } from "react-i18next";
import { Page, Section } from "../components/Page";
import classes from "./TermsPage.module.css";

/** sections contains the sections of the page: the keys of the words and of their definitions in the texts. */
const sections = [
  { key: "basics", words: "terms.basics", help: "terms.basicsHelp" },
  { key: "ticketState", words: "ticketState", help: "terms.ticketStateHelp" },
  { key: "mode", words: "mode", help: "modeHelp" },
  { key: "stage", words: "rollout.stage", help: "rollout.stageHelp" },
  { key: "decision", words: "decision", help: "decisionHelp" },
  { key: "clusterState", words: "clusterState", help: "clusterHelp" },
  { key: "memberHealth", words: "fleet.isState", help: "fleet.stateHelp" },
  { key: "issue", words: "acp.issue", help: "acp.issueHelp" },
  { key: "finding", words: "finding.kind", help: "finding.kindHelp" },
] as const;

/** TermsPage defines the words that the portal uses. */
export function TermsPage() {
  const { t } = useTranslation();
  return (
    <Page title={t("terms.title")} sub={t("terms.intro")}>
      {sections.map(({ key, words, help }) => {
        const names = t(words, { returnObjects: true }) as Record<string, string>;
        const definitions = t(help, { returnObjects: true }) as Record<string, string>;
        return (
          <Section key={key} anchor={key} title={t(`terms.section.${key}`)} testId={`terms-${key}`}>
            <dl className={classes.terms}>
              {Object.entries(names).map(([word, name]) => (
                <div key={word}>
                  <dt>{name}</dt>
                  <dd>{definitions[word]}</dd>
                </div>
              ))}
            </dl>
          </Section>
        );
      })}
    </Page>
  );
}
