import { Button, Checkbox, CopyButton, Group, Modal, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { useCreateToken } from "../../api/own";
import type { TokenScope } from "../../api/types";
import { scopes, scopeWords } from "../../lib/scopes";
import { secondsPerDay } from "../../lib/time";
import { useKey } from "../../lib/use-key";
import { useWords } from "../../lib/use-words";
import { ErrorState, Notice } from "../Feedback";
import classes from "./Profile.module.css";

const lifetimes = ["1", "7", "30", "90", "180", "365"] as const;

/** The secret is shown here and nowhere else: nothing but the button closes the dialog. */
function Secret({ secret, onClose }: { secret: string; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <Modal opened onClose={onClose} withCloseButton={false} closeOnClickOutside={false} closeOnEscape={false} title={<Text fw={620}>{t("tokens.made")}</Text>}>
      <Stack gap="md">
        <Notice>{t("tokens.madeText")}</Notice>
        <code className={classes.secret} data-testid="token-secret">{secret}</code>
        <Group justify="flex-end" gap="sm">
          <CopyButton value={secret}>
            {({ copied, copy }) => (
              <Button variant="default" onClick={copy} data-autofocus data-testid="token-copy">
                {t(copied ? "tokens.copied" : "tokens.copy")}
              </Button>
            )}
          </CopyButton>
          <Button onClick={onClose} data-testid="token-done">
            {t("tokens.done")}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

export function TokenDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation();
  const words = useWords();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<TokenScope[]>(["read"]);
  const [days, setDays] = useState<string>("30");
  const [tried, setTried] = useState(false);
  const keyOf = useKey();
  const create = useCreateToken();

  if (create.data) return <Secret secret={create.data.secret} onClose={onClose} />;

  const refusal = create.error ? asApiError(create.error) : undefined;
  const refused = (field: string) => {
    const message = refusal?.fieldMessage(field);
    return message && words.said(message);
  };
  const nameError = tried && name.trim() === "" ? t("tokens.error.name") : refused("name");
  const scopeError = tried && chosen.length === 0 ? t("tokens.error.scopes") : refused("scopes");

  const submit = () => {
    setTried(true);
    if (name.trim() === "" || chosen.length === 0) return;
    const body = { name: name.trim(), scopes: chosen, expiresInSeconds: Number(days) * secondsPerDay };
    create.mutate({ body, key: keyOf(body) });
  };

  return (
    <Modal opened onClose={onClose} title={<Text fw={620}>{t("tokens.dialog")}</Text>} closeButtonProps={{ "aria-label": t("action.cancel") }}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        data-testid="token-form"
      >
        <Stack gap="md">
          <TextInput label={t("tokens.name")} description={t("tokens.nameHint")} required maxLength={100} value={name} onChange={(event) => setName(event.currentTarget.value)} error={nameError} data-autofocus data-testid="token-name" />
          <Checkbox.Group label={t("tokens.scopes")} required value={chosen} onChange={(next) => setChosen(scopes.filter((scope) => next.includes(scope)))} error={scopeError}>
            <Stack gap={8} mt={6}>
              {scopes.map((scope) => (
                <Checkbox key={scope} size="xs" value={scope} label={t(scopeWords[scope])} data-testid={`scope-${scope}`} />
              ))}
            </Stack>
          </Checkbox.Group>
          <Select label={t("tokens.expires")} allowDeselect={false} data={lifetimes.map((each) => ({ value: each, label: t("tokens.days", { count: Number(each) }) }))} value={days} onChange={(next) => setDays(next ?? days)} error={refused("expiresInSeconds")} data-testid="token-days" />
          {refusal && !nameError && !scopeError && !refused("expiresInSeconds") && <ErrorState error={refusal} title={t("error.actionTitle")} />}
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={onClose}>
              {t("action.cancel")}
            </Button>
            <Button type="submit" loading={create.isPending} data-testid="token-make">
              {t("tokens.make")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
