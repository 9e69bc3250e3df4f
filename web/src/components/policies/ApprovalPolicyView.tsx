import { Button, Group } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useApprovalPolicy } from "../../api/governance";
import type { ApprovalPolicy, PolicyStep } from "../../api/types";
import { approverOf, changePath, quorumOf } from "../../lib/policies";
import { common } from "../../lib/step-rules";
import { useWords } from "../../lib/use-words";
import { ToneBadge } from "../Badge";
import { Loaded } from "../Feedback";
import { PersonName } from "../Names";
import classes from "./Policies.module.css";
import { YamlDetails, YamlText } from "./YamlDetails";

/** Step shows a step. `remind` is the time of its first reminder in seconds, unless it is shown once for all steps. */
function Step({ step, remind }: { step: PolicyStep; remind: number | undefined }) {
  const { t } = useTranslation();
  const words = useWords();
  const quorum = quorumOf(step);
  const approvers = step.approvers.map((text) => {
    const { kind, id } = approverOf(text);
    return t(`policies.approver.${kind}`, { id });
  });
  return (
    <li>
      <strong>{t("policies.step", { name: words.step(step.name) })}</strong>{" "}
      <span>
        {quorum && `${t(`policies.quorum.${quorum.kind}`, { count: quorum.count })} `}
        {words.list(approvers)}
      </span>
      {step.condition && (
        <div className={classes.condition}>
          {t("policies.onlyIf")} <code className={classes.code}>{step.condition}</code>
        </div>
      )}
      {step.limitTo && (
        <div className={classes.condition}>
          {t("policies.limitTo")} <code className={classes.code}>{step.limitTo}</code> {t(`policies.limitFallback.${step.limitFallback ?? "Wait"}`)}
        </div>
      )}
      {step.autoApprove && (
        <div className={classes.condition}>
          {t("policies.byItself")} <code className={classes.code}>{step.autoApprove}</code>
        </div>
      )}
      {step.timeout && (
        <div className={classes.condition}>
          {t("policies.timeout")} {words.message(step.timeout)}
        </div>
      )}
      {remind !== undefined && <div className={classes.condition}>{t("stepRules.remind", { duration: words.duration(remind) })}</div>}
    </li>
  );
}

function PolicyYaml({ name }: { name: string }) {
  const query = useApprovalPolicy(name);
  return <Loaded query={query}>{(policy) => (policy.yaml ? <YamlText text={policy.yaml} label={name} /> : null)}</Loaded>;
}

interface Props {
  policy: ApprovalPolicy;
  /** whole reports whether the reader may see the full policy, including the people who may use break-glass. */
  whole: boolean;
  mayPropose: boolean;
}

/** ApprovalPolicyView shows a policy in words, and its YAML below. */
export function ApprovalPolicyView({ policy, whole, mayPropose }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const { name, builtin, accepted, steps, breakGlassPeople: glass } = policy;
  const reminder = common(steps.map(({ remindSeconds }) => remindSeconds));
  return (
    <li className={`${classes.policy} ${builtin ? classes.builtin : ""}`} data-testid={`policy-${name}`}>
      <div className={classes.head}>
        <h2 className={classes.name}>{builtin ? t("policies.builtin") : name}</h2>
        {!builtin && <span className={classes.muted}>{t("policies.priority", { priority: policy.priority })}</span>}
        {policy.organization && <ToneBadge tone="idle" word={t("organizations.of", { name: policy.organization })} help={t(policy.replaceOwners ? "organizations.policyReplaces" : "organizations.policyAdds")} testId="of-organization" />}
        {!accepted && <ToneBadge tone="bad" word={t("policies.notAccepted")} help={t("policies.notAcceptedHelp")} testId="not-accepted" />}
        {!builtin && mayPropose && (
          <Button component={Link} to={changePath("ApprovalPolicy", name)} size="compact-sm" variant="default" aria-label={t("policies.proposeOf", { name })} data-testid={`propose-${name}`}>
            {t("policies.propose")}
          </Button>
        )}
      </div>
      {builtin && <p className={classes.muted}>{t("policies.builtinText")}</p>}
      {!accepted && policy.message && <p>{words.message(policy.message)}</p>}
      <dl className={classes.facts}>
        {!builtin && (
          <>
            <dt>{t("policies.matches")}</dt>
            <dd>{policy.match ? <code className={classes.code}>{policy.match}</code> : t("policies.everything")}</dd>
          </>
        )}
        <dt>{t("policies.steps")}</dt>
        <dd>
          {steps.length === 0 ? (
            t("policies.noSteps")
          ) : (
            <ol className={classes.steps}>
              {steps.map((step) => (
                <Step key={step.name} step={step} remind={reminder === undefined ? step.remindSeconds : undefined} />
              ))}
            </ol>
          )}
          {reminder !== undefined && <div className={classes.muted} data-testid="reminder-of-all">{t("stepRules.remind", { duration: words.duration(reminder) })}</div>}
          {policy.samePersonManySteps && <div className={classes.muted}>{t("policies.samePerson")}</div>}
          {policy.maxDurationSeconds !== undefined && <div className={classes.muted}>{t("policies.cap", { duration: words.duration(policy.maxDurationSeconds) })}</div>}
        </dd>
        {policy.denyAutoApprove && (
          <>
            <dt>{t("policies.denyAuto")}</dt>
            <dd data-testid="deny-auto-approve">
              {policy.denyAutoApprove.map((condition) => (
                <div key={condition}>
                  <code className={classes.code}>{condition}</code>
                </div>
              ))}
              <div className={classes.muted}>{t("policies.denyAutoText")}</div>
            </dd>
          </>
        )}
        {glass && (
          <>
            <dt>{t("policies.breakGlass")}</dt>
            <dd>
              {glass.length > 0 ? (
                <Group gap="sm">
                  {glass.map((person) => (
                    <PersonName key={person.id} person={person} />
                  ))}
                </Group>
              ) : (
                t(whole ? "policies.nobody" : "policies.breakGlassHidden")
              )}
            </dd>
          </>
        )}
      </dl>
      {whole && !builtin && <YamlDetails>{() => <PolicyYaml name={name} />}</YamlDetails>}
    </li>
  );
}
