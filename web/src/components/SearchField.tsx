import { TextInput } from "@mantine/core";
import type { TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";

interface Props extends Pick<TextInputProps, "size" | "className" | "flex" | "maw"> {
  label: string;
  /** An example in the empty field. The label is then shown above the field, and otherwise in it. */
  placeholder?: string;
  /** The value in the URL. The field follows when it changes elsewhere, except between a key and the arrival of what was typed. */
  value: string;
  onChange: (text: string) => void;
  testId: string;
}

/** SearchField reports its text after the person stops typing for a moment. */
export function SearchField({ label, placeholder, value, onChange, testId, ...rest }: Props) {
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  // What was typed and is not in the URL yet. The URL changes later than onChange is called, and the person may type on meanwhile:
  // to follow an earlier part of their own text would remove what they typed since.
  const [typed, setTyped] = useState<string>();
  if (value !== known) {
    setKnown(value);
    if (typed === undefined) setText(value);
    else if (value === typed) setTyped(undefined);
  }
  const apply = useDebouncedCallback((next: string) => onChange(next.trim()), 200);
  return (
    <TextInput
      type="search"
      leftSection={<IconSearch size={15} aria-hidden />}
      {...(placeholder === undefined ? { placeholder: label, "aria-label": label } : { placeholder, label })}
      value={text}
      maxLength={200}
      onChange={(event) => {
        setText(event.currentTarget.value);
        setTyped(event.currentTarget.value.trim());
        apply(event.currentTarget.value);
      }}
      onBlur={() => setTyped(undefined)}
      data-testid={testId}
      {...rest}
    />
  );
}
