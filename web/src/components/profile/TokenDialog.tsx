import { Button, Checkbox, CopyButton, Select, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useCreateToken } from "../../api/account";
import type { TokenScope } from "../../api/types";
import { scopes, scopeWords } from "../../lib/scopes";
import { secondsPerDay } from "../../lib/time";
import { lifetimes } from "../../lib/token-form";
import type { TokenForm } from "../../lib/token-form";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useKey } from "../../lib/use-key";
import { Notice } from "../Feedback";
import { FormDialog } from "../FormDialog";
import { InfoDialog } from "../InfoDialog";
import classes from "./Profile.module.css";

/** Secret shows the secret once. It cannot be shown again, so only the button closes the dialog. */
function Secret({ secret, onClose }: { secret: string; onClose: () => void }) {
  const { t } = useTranslation();
  return (
    <InfoDialog
      title={t("tokens.made")}
      mustConfirm
      onClose={onClose}
      actions={
        <>
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
        </>
      }
    >
      <Stack gap="md">
        <Notice>{t("tokens.madeText")}</Notice>
        <code className={classes.secret} data-testid="token-secret">{secret}</code>
      </Stack>
    </InfoDialog>
  );
}

interface Props {
  /** The values from before a login. */
  draft: TokenForm | undefined;
  kept: KeptInput;
  onClose: () => void;
}

/** TokenDialog creates a token and shows its secret once. */
export function TokenDialog({ draft, kept, onClose }: Props) {
  const { t } = useTranslation();
  const [name, setName] = useState(draft?.name ?? "");
  const [chosen, setChosen] = useState<TokenScope[]>(draft?.chosen ?? ["read"]);
  const [days, setDays] = useState<string>(draft?.days ?? "30");
  const [tried, setTried] = useState(false);
  const keyOf = useKey();
  const create = useCreateToken();

  if (create.data) return <Secret secret={create.data.secret} onClose={onClose} />;

  const submit = () => {
    setTried(true);
    if (name.trim() === "" || chosen.length === 0) return false;
    const body = { name: name.trim(), scopes: chosen, expiresInSeconds: Number(days) * secondsPerDay };
    create.mutate({ body, key: keyOf(body) }, { onSuccess: kept.discard });
    return true;
  };

  return (
    <FormDialog
      title={t("tokens.dialog")}
      testId="token-form"
      submit={{ label: t("tokens.make"), testId: "token-make", onSubmit: submit }}
      pending={create.isPending}
      error={create.error}
      values={{ name, chosen, days }}
      kept={kept}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <TextInput label={t("tokens.name")} description={t("tokens.nameHint")} required maxLength={100} value={name} onChange={(event) => setName(event.currentTarget.value)} error={(tried && name.trim() === "" && t("tokens.error.name")) || fieldError("name")} data-autofocus data-testid="token-name" />
          <Checkbox.Group label={t("tokens.scopes")} required value={chosen} onChange={(next) => setChosen(scopes.filter((scope) => next.includes(scope)))} error={(tried && chosen.length === 0 && t("tokens.error.scopes")) || fieldError("scopes")}>
            <Stack gap={8} mt={6}>
              {scopes.map((scope) => (
                <Checkbox key={scope} size="xs" value={scope} label={t(scopeWords[scope])} data-testid={`scope-${scope}`} />
              ))}
            </Stack>
          </Checkbox.Group>
          <Select label={t("tokens.expires")} allowDeselect={false} data={lifetimes.map((each) => ({ value: each, label: t("tokens.days", { count: Number(each) }) }))} value={days} onChange={(next) => setDays(next ?? days)} error={fieldError("expiresInSeconds")} data-testid="token-days" />
        </>
      )}
    </FormDialog>
  );
}
