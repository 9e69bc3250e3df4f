import { Button } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useRevokeToken, useTokens } from "../../api/account";
import type { Token } from "../../api/types";
import { ConfirmDialog } from "../ConfirmDialog";
import { DataTable } from "../DataTable";
import type { Column } from "../DataTable";
import { EmptyState, Loaded } from "../Feedback";
import { Section } from "../Page";
import tables from "../Tables.module.css";
import { RelativeTime } from "../Time";
import { tokensCSV } from "../../lib/tables/account";
import { scopeWords } from "../../lib/scopes";
import { isTokenForm } from "../../lib/token-form";
import { useKeptDialog } from "../../lib/use-kept-dialog";
import { useToast } from "../toast-context";
import { TokenDialog } from "./TokenDialog";
import { instant } from "../../lib/table-sort";

function Revoke({ token, onClose }: { token: Token; onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const revoke = useRevokeToken();
  return (
    <ConfirmDialog
      title={t("tokens.revokeTitle", { name: token.name })}
      text={t("tokens.revokeText")}
      confirm={t("tokens.revoke")}
      danger
      pending={revoke.isPending}
      error={revoke.error}
      testId="revoke-token"
      onConfirm={() =>
        revoke.mutate(token.id, {
          onSuccess: () => {
            toast(t("tokens.revoked", { name: token.name }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

/** Tokens lists the API tokens that act in the person's name. */
export function Tokens() {
  const { t } = useTranslation();
  const query = useTokens();
  const { opened, draft, kept, open, close } = useKeptDialog("token", isTokenForm);
  const [revoking, setRevoking] = useState<Token>();
  const columns: Column<Token>[] = [
    {
      key: "name",
      header: t("tokens.name"),
      sortBy: (row) => row.name,
      cell: (row) => (
        <span className={tables.stack}>
          <span className={tables.title}>{row.name}</span>
          {row.prefix && <span className={tables.muted}>{t("tokens.prefix")} <code className={tables.code}>{row.prefix}</code></span>}
        </span>
      ),
    },
    {
      key: "scopes",
      header: t("tokens.scopes"),
      cell: (row) => (
        <span className={tables.stack}>
          {row.scopes.map((scope) => (
            <span key={scope}>{t(scopeWords[scope])}</span>
          ))}
        </span>
      ),
    },
    { key: "created", header: t("tokens.created"), nowrap: true, cell: (row) => <RelativeTime at={row.createdAt} />, sortBy: (row) => instant(row.createdAt) },
    { key: "used", header: t("tokens.lastUsed"), nowrap: true, cell: (row) => (row.lastUsedAt ? <RelativeTime at={row.lastUsedAt} /> : t("tokens.never")), sortBy: (row) => instant(row.lastUsedAt) },
    { key: "ends", header: t("tokens.ends"), nowrap: true, cell: (row) => <RelativeTime at={row.expiresAt} />, sortBy: (row) => instant(row.expiresAt) },
    {
      key: "revoke",
      header: t("action.column"),
      silent: true,
      end: true,
      cell: (row) => (
        <Button size="compact-sm" variant="default" onClick={() => setRevoking(row)} aria-label={t("tokens.revokeOf", { name: row.name })} data-testid={`revoke-${row.id}`}>
          {t("tokens.revoke")}
        </Button>
      ),
    },
  ];
  const make = (
    <Button size="compact-sm" variant="light" onClick={open} data-testid="new-token">
      {t("tokens.create")}
    </Button>
  );
  return (
    <Section anchor="tokens" title={t("tokens.title")} aside={query.data && query.data.items.length > 0 ? make : undefined} testId="tokens">
      <Loaded query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState action={make}>{t("tokens.empty")}</EmptyState>
          ) : (
            <>
              <p className={tables.muted}>{t("tokens.intro")}</p>
              <DataTable csv={tokensCSV} sortParam="tokens-sort" label={t("tokens.title")} columns={columns} rows={items} rowKey={(row) => row.id} rowTestId={(row) => `token-${row.id}`} />
            </>
          )
        }
      </Loaded>
      {opened && <TokenDialog draft={draft} kept={kept} onClose={close} />}
      {revoking && <Revoke token={revoking} onClose={() => setRevoking(undefined)} />}
    </Section>
  );
}
