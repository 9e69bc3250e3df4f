import { Trans, useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { TicketItem, TicketKind } from "../api/types";
import { hoursText } from "../lib/hours";
import { useWords } from "../lib/use-words";
import { scopeElements } from "./scope-elements";

/** ItemSentence says in one sentence what happens if the item is approved. */
export function ItemSentence({ item, kind }: { item: TicketItem; kind: TicketKind }) {
  const { t, i18n } = useTranslation();
  const words = useWords();
  const b = { b: <strong /> };
  const resource = item.resource?.title ?? "";
  const application = item.application?.title ?? "";
  const to = item.toMode ? t(`mode.${item.toMode}`) : "";
  switch (kind) {
    case "grant":
    case "extend":
      return (
        <>
          <Trans i18nKey={kind === "grant" ? "decide.lets" : "decide.keeps"} values={{ application, resource, actions: words.list(item.actions ?? []), duration: kind === "grant" ? words.lasting(item.durationSeconds) : words.duration(item.durationSeconds) }} components={b} />
          {item.hours && <> <Trans i18nKey="decide.onlyDuring" values={{ hours: hoursText(item.hours, i18n.language) }} components={b} /></>}
          {item.package && <> <Trans i18nKey="packages.partOf" values={{ name: item.package.name, version: item.package.version }} components={{ to: <Link to={`/packages/${item.package.name}`} /> }} />{item.package.given && <> {t("packages.givenNote")}</>}</>}
        </>
      );
    case "revoke":
      return <Trans i18nKey="decide.takes" values={{ application, resource, ticket: item.target?.ticket ?? "" }} components={b} />;
    case "mode":
      return (
        <>
          <Trans i18nKey={item.fromMode ? "decide.switches" : "decide.switchesTo"} values={{ resource, from: item.fromMode ? t(`mode.${item.fromMode}`) : "", to }} components={b} /> {item.toMode && t(`modeHelp.${item.toMode}`)}
        </>
      );
    case "onboard":
      return (
        <>
          <Trans i18nKey="decide.onboards" values={{ resource, to }} components={b} /> {item.toMode && t(`modeHelp.${item.toMode}`)}
        </>
      );
    case "offboard":
      return <Trans i18nKey="decide.offboards" values={{ resource }} components={b} />;
    case "class":
    case "approval-policy":
      return item.object ? <Trans i18nKey={`decide.object.${item.object.verb}`} values={{ kind: t(`objectKind.${item.object.kind}`), name: item.object.name }} components={b} /> : null;
    case "workload":
      return item.workload ? <Trans i18nKey={item.workload.before.length > 0 ? "decide.changesWorkload" : "decide.registersWorkload"} values={{ id: item.workload.id, application, addresses: words.list(item.workload.after) }} components={b} /> : null;
    case "statement":
      return item.scope ? (
        <>
          <Trans i18nKey={`decide.statement${item.scope.effect}`} values={{ actions: words.list(item.actions ?? []), duration: words.lasting(item.durationSeconds) }} components={scopeElements(item.scope)} />
          {item.hours && <> <Trans i18nKey="decide.onlyDuring" values={{ hours: hoursText(item.hours, i18n.language) }} components={b} /></>}
        </>
      ) : null;
    case "package":
      return item.package ? (
        <>
          <Trans i18nKey="packages.publishes" values={{ title: item.package.title ?? item.package.name, version: item.package.version }} components={b} />
          {item.package.holders !== undefined && <> {t("packages.givesHolders", { count: item.package.holders })}</>}
        </>
      ) : null;
  }
}

/** ItemSentences shows the sentences of the first items, and how many more there are. */
export function ItemSentences({ items, kind, limit = 5 }: { items: TicketItem[]; kind: TicketKind; limit?: number }) {
  const { t } = useTranslation();
  const [only] = items;
  if (items.length === 1 && only) return <ItemSentence item={only} kind={kind} />;
  return (
    <ul style={{ margin: 0, paddingLeft: 18 }}>
      {items.slice(0, limit).map((item) => (
        <li key={item.position}>
          <ItemSentence item={item} kind={kind} />
        </li>
      ))}
      {items.length > limit && <li>{t("decide.andMore", { count: items.length - limit })}</li>}
    </ul>
  );
}
