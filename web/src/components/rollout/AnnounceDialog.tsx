import { Text, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useAnnounce } from "../../api/flow-mutations";
import type { RolloutCard } from "../../api/types";
import { split } from "../../lib/rollout";
import { textLimit } from "../../lib/request";
import { useKey } from "../../lib/use-key";
import { useZone } from "../../lib/use-zone";
import { instantOf } from "../../lib/zone";
import { FormDialog } from "../FormDialog";
import { AffectedResources } from "./AffectedResources";
import { RolloutResults } from "./RolloutResults";

interface Props {
  cards: RolloutCard[];
  onClose: (done: boolean) => void;
}

/** AnnounceDialog notifies the owners of the observed clients that resources will be enforced. */
export function AnnounceDialog({ cards, onClose }: Props) {
  const { t } = useTranslation();
  const zone = useZone();
  const announce = useAnnounce();
  const keyOf = useKey();
  const [{ able, others }] = useState(() => split(cards, "announce"));
  const only = able.length === 1 && others.length === 0 ? able[0] : undefined;
  const [message, setMessage] = useState("");
  const [wall, setWall] = useState("");
  const [tried, setTried] = useState(false);
  const clients = able.reduce((sum, card) => sum + card.clients, 0);
  if (announce.data) return <RolloutResults results={announce.data.items} cards={able} onClose={() => onClose(true)} />;

  const submit = () => {
    setTried(true);
    if (message.trim() === "" || able.length === 0) return false;
    const at = instantOf(wall, zone);
    const body = { resources: able.flatMap(({ resource }) => (resource.id === undefined ? [] : [resource.id])), message: message.trim(), ...(at ? { enforceAt: at.toISOString() } : {}) };
    announce.mutate({ body, key: keyOf(body) });
    return true;
  };

  return (
    <FormDialog
      title={only ? t("rollout.announce.titleOf", { resource: only.resource.title }) : t("rollout.announce.title", { count: able.length })}
      size="lg"
      testId="announce-dialog"
      submit={{ label: t("rollout.announce.confirm"), disabled: able.length === 0, testId: "announce-confirm", onSubmit: submit }}
      pending={announce.isPending}
      error={announce.error}
      values={{ message, wall }}
      onClose={() => onClose(false)}
    >
      {(fieldError) => (
        <>
          <Text size="sm">{t("rollout.announce.text", { count: clients })}</Text>
          {!only && <AffectedResources able={able} others={others} />}
          <Textarea
            label={t("rollout.announce.message")}
            description={t("rollout.announce.messageHint")}
            required
            autosize
            minRows={3}
            maxLength={textLimit}
            value={message}
            onChange={(event) => setMessage(event.currentTarget.value)}
            error={tried && message.trim() === "" ? t("rollout.announce.messageNeeded") : fieldError("message")}
            data-autofocus
            data-testid="announce-message"
          />
          <TextInput type="datetime-local" label={t("rollout.announce.at")} description={t("rollout.announce.atHint", { zone })} value={wall} onChange={(event) => setWall(event.currentTarget.value)} error={fieldError("enforceAt")} data-testid="announce-at" />
        </>
      )}
    </FormDialog>
  );
}
