import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useInstructWaves } from "../../api/flow-mutations";
import type { RolloutCard, WavesAction } from "../../api/types";
import { useWords } from "../../lib/use-words";
import { ReasonDialog } from "../ReasonDialog";
import { RelativeTime } from "../Time";
import { useToast } from "../toast-context";
import classes from "./Rollout.module.css";

function InstructDialog({ card, action, onClose }: { card: RolloutCard; action: WavesAction; onClose: () => void }) {
  const { t } = useTranslation();
  const toast = useToast();
  const instruct = useInstructWaves(card.resource.id ?? "");
  return (
    <ReasonDialog
      title={t(`rollout.waves.title.${action}`, { resource: card.resource.title })}
      text={t(`rollout.waves.text.${action}`)}
      confirm={t(`rollout.waves.do.${action}`)}
      danger={action !== "pause"}
      pending={instruct.isPending}
      error={instruct.error}
      testId="waves"
      onConfirm={(reason) =>
        instruct.mutate({ action, reason }, {
          onSuccess: () => {
            toast(t("rollout.waves.given", { resource: card.resource.title }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

/** Waves shows how far Enforce has come in the waves of the class, why they are halted, and the actions that the person may take. */
export function Waves({ card }: { card: RolloutCard }) {
  const { t } = useTranslation();
  const words = useWords();
  const [action, setAction] = useState<WavesAction>();
  const { waves } = card;
  if (!waves) return null;
  const { halt } = waves;
  return (
    <div data-testid="waves" data-value={halt?.reason ?? "progressing"}>
      <p className={classes.hint}>
        {t("rollout.waves.progress", { wave: waves.wave, waves: waves.waves, name: waves.name ?? t("rollout.waves.others") })}
        {" · "}
        {t("rollout.waves.waiting", { count: waves.waiting })}
        {!halt && waves.enforcedSince && (
          <>
            {" · "}
            {t("rollout.waves.soaking")} <RelativeTime at={waves.enforcedSince} />
          </>
        )}
      </p>
      {halt && (
        <p className={classes.stopped} data-testid="waves-halted">
          {t("rollout.waves.halted")} {words.message(halt.message)} {halt.by && t("rollout.waves.by", { person: halt.by.displayName })} <RelativeTime at={halt.at} />
        </p>
      )}
      {waves.actions.length > 0 && (
        <Group gap={8} mt={8}>
          {waves.actions.map((each) => (
            <Button key={each} size="compact-xs" variant="default" onClick={() => setAction(each)} data-testid={`waves-${each}`}>
              {t(`rollout.waves.do.${each}`)}
            </Button>
          ))}
        </Group>
      )}
      {action && <InstructDialog card={card} action={action} onClose={() => setAction(undefined)} />}
    </div>
  );
}
