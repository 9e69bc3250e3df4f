import { ActionIcon, Checkbox, Menu } from "@mantine/core";
import { IconDots } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { RolloutCard } from "../../api/types";
import { anchors, missingOf } from "../../lib/rollout";
import { useWords } from "../../lib/use-words";
import badge from "../Badge.module.css";
import { ToneBadge } from "../Badge";
import { ScoreBar } from "../evidence/EvidencePanel";
import { useWorstMembers } from "../MemberSummary";
import { Owners } from "../Names";
import { clusterStateStyles, modeStyles } from "../state-styles";
import { RelativeTime } from "../Time";
import classes from "./Rollout.module.css";
import { Waves } from "./Waves";

/** CardAction is an action of a card on the rollout board. */
export type CardAction = "advance" | "announce" | "guard";

/** mostMembers is the maximum number of members on a card. */
const mostMembers = 8;

/** Members shows the mode of each member, because resources are enforced member by member. */
function Members({ card }: { card: RolloutCard }) {
  const { t } = useTranslation();
  const { shown, more } = useWorstMembers(card.clusters, mostMembers, (cluster) => cluster.state);
  return (
    <div className={classes.members}>
      {shown.map(({ cluster, mode = card.mode, state }) => {
        const look = state === "Realized" ? modeStyles[mode] : clusterStateStyles[state];
        const Icon = look.icon;
        const word = t(`mode.${mode}`);
        return (
          <span key={cluster} className={`${badge.badge} ${badge[look.tone]}`} title={`${t(`modeHelp.${mode}`)} ${t(`clusterHelp.${state}`)}`} data-testid={`member-${cluster}`} data-value={mode}>
            <Icon size={13} aria-hidden />
            {cluster} {word}
            {state !== "Realized" && `, ${t(`clusterState.${state}`).toLocaleLowerCase()}`}
          </span>
        );
      })}
      {more}
    </div>
  );
}

function Actions({ card, onAct }: { card: RolloutCard; onAct: (action: CardAction) => void }) {
  const { t } = useTranslation();
  const offered = (["advance", "announce", "guard"] as const).filter((action) => card.can[action]);
  if (offered.length === 0 || card.resource.id === undefined) return null;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label={t("rollout.actionsOf", { resource: card.resource.title })} data-testid={`card-menu-${card.resource.id}`}>
          <IconDots size={16} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {offered.map((action) => (
          <Menu.Item key={action} onClick={() => onAct(action)} data-testid={`card-${action}`}>
            {t(`rollout.do.${action}`)}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

interface Props {
  card: RolloutCard;
  selected: boolean;
  onSelect: () => void;
  onAct: (action: CardAction) => void;
}

/** ResourceCard shows a resource on the rollout board with its evidence, its next step and the actions that the person may take. */
export function ResourceCard({ card, selected, onSelect, onAct }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const { resource, guard, hint } = card;
  const missing = missingOf(card);
  const path = resource.id === undefined ? undefined : `/resources/${encodeURIComponent(resource.id)}`;
  const anchor = hint === undefined ? undefined : anchors[hint.code];
  const selects = resource.id !== undefined && (card.can.advance || card.can.announce);
  return (
    <li className={classes.card} data-selected={selected} data-stopped={guard.stoppedAt !== undefined} data-testid={`card-${resource.id ?? resource.name}`} data-value={card.stage}>
      <div className={classes.top}>
        {selects && <Checkbox size="xs" mt={3} checked={selected} onChange={onSelect} aria-label={t("approvals.select", { id: resource.title })} data-testid={`select-${resource.id}`} />}
        <div className={classes.about}>
          {path ? <Link className={classes.name} to={path} title={resource.name}>{resource.title}</Link> : <span className={classes.name} title={resource.name}>{resource.title}</span>}
          <div className={classes.by}>
            {card.class && `${card.class} · `}
            <Owners owners={card.owners} />
          </div>
        </div>
        <Actions card={card} onAct={onAct} />
      </div>
      <div className={classes.scoreLine}>
        {card.score === undefined ? <span>{t("rollout.noScore")}</span> : <ScoreBar value={card.score} threshold={card.threshold} enough={card.enough === true} />}
        {card.score !== undefined && (
          <span data-testid="card-score" data-value={card.score}>
            {t("rollout.score", { value: card.score })}
          </span>
        )}
      </div>
      {guard.stoppedAt && (
        <p className={classes.stopped} data-testid="card-stopped">
          {t("rollout.stopped", { count: guard.count ?? 0, cluster: guard.cluster ?? "" })} <RelativeTime at={guard.stoppedAt} />
        </p>
      )}
      <Waves card={card} />
      {hint && <p className={classes.hint} data-testid="card-hint" data-value={hint.code}>{path && anchor !== undefined ? <Link to={`${path}${anchor}`}>{words.message(hint.message)}</Link> : words.message(hint.message)}</p>}
      {missing.length > 0 && (
        <ul className={classes.missing}>
          {missing.map((each) => (
            <li key={each.text}>{words.message(each)}</li>
          ))}
        </ul>
      )}
      <Members card={card} />
      <div className={classes.notes}>
        <span>{t("rollout.clients", { count: card.clients })}</span>
        {card.newcomers > 0 && <span>{t("rollout.newcomers", { count: card.newcomers })}</span>}
        {(card.unattributed ?? 0) > 0 && <span>{t("rollout.unattributed", { count: card.unattributed })}</span>}
        {card.announcement && (
          <span title={card.announcement.message}>
            {t("rollout.announced", { count: card.announcement.recipients })} <RelativeTime at={card.announcement.at} />
          </span>
        )}
        {card.ticket && (
          <span>
            {t("rollout.underWay")} <Link to={`/tickets/${card.ticket}`}>{card.ticket}</Link>
          </span>
        )}
        {card.temporaryAudit?.active && <ToneBadge tone="warn" word={t("rollout.temporaryAudit")} help={card.temporaryAudit.reason} />}
      </div>
    </li>
  );
}
