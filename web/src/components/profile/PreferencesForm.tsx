import { Button, Group, Select, SimpleGrid } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { usePutPreferences } from "../../api/account";
import type { Me, Preferences } from "../../api/types";
import { chooseLanguage, languageNames, languages } from "../../i18n";
import { noticeKinds } from "../../lib/notices";
import type { NoticeKind } from "../../lib/notices";
import { useWords } from "../../lib/use-words";
import { browserZone } from "../../lib/zone";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { EmptyState, ErrorState } from "../Feedback";
import { Section } from "../Page";
import { useToast } from "../toast-context";
import classes from "./Profile.module.css";

type When = Preferences["channels"][string][string];
const whens = ["at-once", "digest", "off"] as const satisfies readonly When[];

const hours = Array.from({ length: 24 }, (_, hour) => ({ value: String(hour), label: `${String(hour).padStart(2, "0")}:00` }));

const known = ["inbox", "mail", "slack"] as const;
const isKnown = (channel: string): channel is (typeof known)[number] => known.some((each) => each === channel);

interface MatrixProps {
  /** Kinds of notifications whose channels can be chosen. The inbox always contains all kinds. */
  channels: string[];
  value: Preferences["channels"];
  onChange: (value: Preferences["channels"]) => void;
}

function Matrix({ channels, value, onChange }: MatrixProps) {
  const { t } = useTranslation();
  const nameOf = (channel: string) => (isKnown(channel) ? t(`profile.channel.${channel}`) : channel);
  const columns: Column<NoticeKind>[] = [
    { key: "kind", header: t("profile.notice"), cell: (kind) => t(`kindOfNotice.${kind}`) },
    ...channels.map((channel): Column<NoticeKind> => ({
      key: channel,
      header: nameOf(channel),
      cell: (kind) => (
        <Select
          className={classes.choice}
          size="xs"
          allowDeselect={false}
          aria-label={t("profile.whenOf", { kind: t(`kindOfNotice.${kind}`), channel: nameOf(channel) })}
          data={whens.map((when) => ({ value: when, label: t(`profile.when.${when}`) }))}
          value={value[channel]?.[kind] ?? "off"}
          onChange={(next) => onChange({ ...value, [channel]: { ...value[channel], [kind]: whens.find((when) => when === next) ?? "off" } })}
          data-testid={`when-${channel}-${kind}`}
        />
      ),
    })),
  ];
  return <DataTable label={t("profile.notifications")} columns={columns} rows={[...noticeKinds]} rowKey={(kind) => kind} testId="notice-matrix" />;
}

/** PreferencesForm edits the language, the time zone and the channels of notifications, and saves them together. */
export function PreferencesForm({ me, stored }: { me: Me; stored: Preferences }) {
  const { t } = useTranslation();
  const words = useWords();
  const toast = useToast();
  const put = usePutPreferences();
  const here = browserZone();
  // Without a stored choice the browser's setting is shown, and saved with the form.
  const [form, setForm] = useState<Preferences>(() => ({ ...stored, language: me.language ?? (document.documentElement.lang === "zh" ? "zh" : "en"), timeZone: me.timeZone ?? here }));
  const change = (next: Partial<Preferences>) => setForm((before) => ({ ...before, ...next }));
  const refusal = put.error ? asApiError(put.error) : undefined;
  const refused = refusal?.fieldMessage("timeZone");
  const zones = [...new Set([here, form.timeZone, "UTC", ...Intl.supportedValuesOf("timeZone")])];
  const channels = (stored.available ?? []).filter((channel) => channel !== "inbox");

  const save = () =>
    put.mutate(form, {
      onSuccess: ({ language }) => {
        toast(t("profile.saved"));
        void chooseLanguage(language).then((loaded) => loaded || toast(t("header.languageFailed"), "failed"));
      },
    });

  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
      data-testid="preferences"
    >
      <Section title={t("profile.display")}>
        <SimpleGrid cols={{ base: 1, sm: 3 }}>
          <Select
            label={t("profile.language")}
            allowDeselect={false}
            data={languages.map((language) => ({ value: language, label: languageNames[language] }))}
            value={form.language}
            onChange={(next) => change({ language: languages.find((each) => each === next) ?? form.language })}
            data-testid="pref-language"
          />
          <Select
            label={t("profile.timeZone")}
            searchable
            allowDeselect={false}
            limit={100}
            data={zones.map((zone) => ({ value: zone, label: zone === here ? t("profile.timeZoneHere", { zone }) : zone }))}
            value={form.timeZone}
            onChange={(zone) => change({ timeZone: zone ?? here })}
            error={refused && words.message(refused)}
            data-testid="pref-zone"
          />
          {channels.length > 0 && (
            <Select label={t("profile.digestHour")} allowDeselect={false} data={hours} value={String(form.digestHour ?? 9)} onChange={(hour) => change({ digestHour: Number(hour) })} data-testid="pref-digest" />
          )}
        </SimpleGrid>
      </Section>
      <Section anchor="notifications" title={t("profile.notifications")} aside={t("profile.notificationsHint")}>
        {channels.length > 0 ? <Matrix channels={channels} value={form.channels} onChange={(value) => change({ channels: value })} /> : <EmptyState>{t("profile.onlyInbox")}</EmptyState>}
      </Section>
      {refusal && refused === undefined && <ErrorState error={refusal} title={t("error.actionTitle")} />}
      <Group mt="md">
        <Button type="submit" loading={put.isPending} data-testid="pref-save">
          {t("profile.save")}
        </Button>
      </Group>
    </form>
  );
}
