import { Button, Group, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useSearchParams } from "react-router";
import { asApiError } from "../api/client";
import { useDecideDevice, useDevice } from "../api/account";
import type { DeviceLogin } from "../api/types";
import { EmptyState, ErrorState, Notice, RowsSkeleton } from "../components/Feedback";
import { Page, Section } from "../components/Page";
import classes from "../components/profile/Profile.module.css";
import { RelativeTime } from "../components/Time";
import { scopeWords } from "../lib/scopes";
import { userCodeOf } from "../lib/user-code";
import { useWords } from "../lib/use-words";

function Enter({ initial, error, onLook }: { initial: string; error: string | undefined; onLook: (code: string) => void }) {
  const { t } = useTranslation();
  const [text, setText] = useState(initial);
  const [tried, setTried] = useState(false);
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setTried(true);
        const code = userCodeOf(text);
        if (code) onLook(code);
      }}
      data-testid="device-form"
    >
      <Stack gap="md" maw={320}>
        <TextInput
          label={t("device.code")}
          description={t("device.codeHint")}
          placeholder="BCDF-GHJK"
          required
          size="md"
          autoComplete="off"
          autoCapitalize="characters"
          spellCheck={false}
          maxLength={16}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          error={tried && userCodeOf(text) === "" ? t("device.error") : error}
          data-testid="device-code"
        />
        <Group>
          <Button type="submit" data-testid="device-look">
            {t("device.look")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function Asked({ login, code, onDone }: { login: DeviceLogin; code: string; onDone: (denied: boolean) => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const decide = useDecideDevice();
  const send = (deny: boolean) => decide.mutate({ userCode: code, deny }, { onSuccess: () => onDone(deny) });
  return (
    <Section title={t("device.asks")} testId="device-asked">
      <Stack gap="md">
        <dl className={classes.facts}>
          <dt>{t("device.code")}</dt>
          <dd><code>{code}</code></dd>
          <dt>{t("device.says")}</dt>
          <dd>
            <strong>{login.client || t("device.nameless")}</strong>
            <div className={classes.hint}>{t("device.saysHint")}</div>
          </dd>
          <dt>{t("device.address")}</dt>
          <dd><code>{login.address}</code></dd>
          <dt>{t("device.started")}</dt>
          <dd><RelativeTime at={login.startedAt} /></dd>
          <dt>{t("device.may")}</dt>
          <dd>
            {login.scopes.map((scope) => (
              <div key={scope}>{t(scopeWords[scope])}</div>
            ))}
          </dd>
          <dt>{t("device.lasts")}</dt>
          <dd>{words.duration(login.tokenSeconds)}</dd>
        </dl>
        <Notice>{t("device.warn")}</Notice>
        {decide.error ? <ErrorState error={decide.error} title={t("error.actionTitle")} /> : null}
        <Group gap="sm">
          <Button loading={decide.isPending && !decide.variables.deny} disabled={decide.isPending} onClick={() => send(false)} data-testid="device-agree">
            {t("device.agree")}
          </Button>
          <Button variant="default" loading={decide.isPending && decide.variables.deny} disabled={decide.isPending} onClick={() => send(true)} data-testid="device-deny">
            {t("device.deny")}
          </Button>
        </Group>
      </Stack>
    </Section>
  );
}

/** DevicePage approves the login of a command line. A link only fills in the code; the person has to submit it. */
export function DevicePage() {
  const { t } = useTranslation();
  const [search] = useSearchParams();
  const [code, setCode] = useState("");
  const [done, setDone] = useState<"agreed" | "denied">();
  const login = useDevice(done ? "" : code);
  const unknown = login.error !== null && asApiError(login.error).code === "not-found";

  const body = () => {
    if (done) {
      return (
        <EmptyState
          testId="device-done"
          action={
            <Button
              variant="default"
              onClick={() => {
                setDone(undefined);
                setCode("");
              }}
            >
              {t("device.another")}
            </Button>
          }
        >
          {t(`device.${done}`)}
        </EmptyState>
      );
    }
    if (code && login.data) return <Asked login={login.data} code={code} onDone={(denied) => setDone(denied ? "denied" : "agreed")} />;
    if (code && login.isFetching) return <RowsSkeleton rows={3} />;
    return (
      <>
        <Enter
          initial={code || (search.get("code") ?? "").slice(0, 16)}
          error={unknown ? t("device.unknown") : undefined}
          onLook={(next) => {
            // The same code again reads it again.
            if (next === code) void login.refetch();
            setCode(next);
          }}
        />
        {login.error && !unknown ? <ErrorState error={login.error} onRetry={() => void login.refetch()} /> : null}
      </>
    );
  };

  return (
    <Page title={t("device.title")} sub={t("device.intro")}>
      {body()}
    </Page>
  );
}
