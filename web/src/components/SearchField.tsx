import { TextInput } from "@mantine/core";
import type { TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";

interface Props extends Pick<TextInputProps, "size" | "className" | "flex" | "maw"> {
  label: string;
  /** An example in the empty field. The label is then shown above the field, and otherwise in it. */
  placeholder?: string;
  /** The value in the URL. The field follows when it changes elsewhere, but not while typed text is on its way into the URL. */
  value: string;
  onChange: (text: string) => void;
  testId: string;
}

/** SearchField reports its text after the person stops typing for a moment. */
export function SearchField({ label, placeholder, value, onChange, testId, ...rest }: Props) {
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  // The typed text until it is in the URL; undefined if nothing is on its way. The URL changes some time after onChange is called. If the field then
  // showed the value of the URL, it would lose what the person has typed in between.
  const [typed, setTyped] = useState<string>();
  if (value !== known) {
    setKnown(value);
    if (typed === undefined) setText(value);
    else if (value === typed) setTyped(undefined);
  }
  const apply = useDebouncedCallback((next: string) => {
    const trimmed = next.trim();
    onChange(trimmed);
    if (trimmed === value) setTyped(undefined);
  }, 200);
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
