import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useInstructClassWaves, useInstructWaves } from "../../api/flow-mutations";
import type { ClassInfo, RolloutCard, RolloutWaves, WavesAction } from "../../api/types";
import { useKeptDialog } from "../../lib/use-kept-dialog";
import type { KeptInput } from "../../lib/use-kept-dialog";
import { useWords } from "../../lib/use-words";
import { ReasonDialog } from "../ReasonDialog";
import { RelativeTime } from "../Time";
import { useToast } from "../toast-context";
import classes from "./Rollout.module.css";

interface Props {
  waves: RolloutWaves;
  /** The kind of object whose waves are shown, which selects the texts. */
  of: "resource" | "class";
  /** The name of the resource or the class, for people. */
  title: string;
  /** The mutation that gives an instruction. */
  instruct: ReturnType<typeof useInstructWaves>;
}

/** A reason and an action, as ReasonDialog keeps them while the person logs in: to roll back needs a recent login. */
type Instruction = [reason: string, action: WavesAction];

const actions: ReadonlySet<unknown> = new Set<WavesAction>(["pause", "resume", "skip", "finish", "rollback"]);

const isInstruction = (value: unknown): value is Instruction => Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && actions.has(value[1]);

interface InstructDialogProps extends Omit<Props, "waves"> {
  action: WavesAction;
  /** The reason from before a login. */
  draft: string | undefined;
  kept: KeptInput;
  onClose: () => void;
}

function InstructDialog({ of, title, instruct, action, draft, kept, onClose }: InstructDialogProps) {
  const { t } = useTranslation();
  const toast = useToast();
  return (
    <ReasonDialog
      title={t(`rollout.waves.title.${action}`, { resource: title })}
      text={t(`rollout.waves.${of === "class" ? "classText" : "text"}.${action}`)}
      confirm={t(`rollout.waves.do.${action}`)}
      danger={action !== "pause"}
      pending={instruct.isPending}
      error={instruct.error}
      values={action}
      draft={draft}
      kept={kept}
      testId="waves"
      onConfirm={(reason) =>
        instruct.mutate({ action, reason }, {
          onSuccess: () => {
            toast(t("rollout.waves.given", { resource: title }));
            onClose();
          },
        })
      }
      onClose={onClose}
    />
  );
}

/** WavesProgress shows how far a change has come in the waves of the class, why they are halted, and the actions that the person may take. */
function WavesProgress({ waves, of, title, instruct }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const { opened, draft, kept, open, close } = useKeptDialog(`waves ${of} ${title}`, isInstruction);
  const [chosen, setChosen] = useState<WavesAction>();
  const action = chosen ?? draft?.[1];
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
            {t(of === "class" ? "rollout.waves.classSoaking" : "rollout.waves.soaking")} <RelativeTime at={waves.enforcedSince} />
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
            <Button
              key={each}
              size="compact-xs"
              variant="default"
              onClick={() => {
                setChosen(each);
                open();
              }}
              data-testid={`waves-${each}`}
            >
              {t(`rollout.waves.do.${each}`)}
            </Button>
          ))}
        </Group>
      )}
      {opened && action && <InstructDialog of={of} title={title} instruct={instruct} action={action} draft={draft?.[0]} kept={kept} onClose={close} />}
    </div>
  );
}

/** Waves shows how far Enforce of a resource has come in the waves of its class. */
export function Waves({ card }: { card: RolloutCard }) {
  const instruct = useInstructWaves(card.resource.id ?? "");
  return card.waves && <WavesProgress waves={card.waves} of="resource" title={card.resource.title} instruct={instruct} />;
}

/** ClassWaves shows how far a change of a class has come in its waves. */
export function ClassWaves({ info }: { info: ClassInfo }) {
  const instruct = useInstructClassWaves(info.name);
  return info.waves && <WavesProgress waves={info.waves} of="class" title={info.name} instruct={instruct} />;
}
