#!/bin/sh
# A scripted agent: it explores, plans and builds a small greeting program, offline.
# BACKSTOP_PHASE says who it is: an explorer, a planner, or the builder of a task.
set -eu
prompt=$(cat)
answer() { cat > "$BACKSTOP_RESULT"; }
done_with() {
  printf '{"phase_id": "%s", "status": "complete", "commit_message": "%s"}' "$BACKSTOP_PHASE" "$1" | answer
}
case $BACKSTOP_PHASE in
  structure) echo '{"mode":"structure","status":"ok","directories":{"lib":true},"entry_points":["greet.sh"]}' | answer ;;
  pattern) echo '{"mode":"pattern","status":"ok","framework":"none","confidence":0.9}' | answer ;;
  memory) echo '{"mode":"memory","status":"ok","failures":[]}' | answer ;;
  # The fourth explorer fails: three are enough.
  delta) echo "cannot look: the index is broken" >&2; exit 1 ;;
  plan1) answer <<'END'
### Confidence: CLARIFY
## Blocking Questions
1. In which language is the greeting?
END
  ;;
  plan*) answer <<'END'
### Confidence: PROCEED

```json
{"objective": "A program that greets", "campaign": "greet",
 "tasks": [
  {"seq": "001", "slug": "spec-greet", "type": "SPEC", "delta": ["test.sh"], "verify": "sh -n test.sh", "budget": 5, "depends": "none"},
  {"seq": "002", "slug": "greet", "type": "BUILD", "delta": ["greet.sh"], "verify": "sh test.sh", "budget": 5, "depends": "001"},
  {"seq": "003", "slug": "translate", "type": "BUILD", "delta": ["words.txt"], "verify": "grep -q hola words.txt", "budget": 5, "depends": "none"},
  {"seq": "004", "slug": "choose", "type": "BUILD", "delta": ["choose.sh"], "verify": "sh choose.sh | grep -q hola", "budget": 5, "depends": ["002", "003"]},
  {"seq": "005", "slug": "check", "type": "VERIFY", "delta": ["choose.sh"], "verify": "sh choose.sh && sh test.sh", "budget": 5, "depends": "004"}
 ]}
```
END
  ;;
  replan*) answer <<'END'
### Confidence: PROCEED

```json
{"tasks": [{"seq": "003", "slug": "translate", "type": "BUILD", "description": "by hand, without the service", "delta": ["words.txt"],
  "verify": "grep -q hola words.txt", "budget": 5, "depends": "none"}]}
```
END
  ;;
  001) printf 'out=$(sh greet.sh ada)\n[ "$out" = "hello, ada" ]\n' > test.sh; done_with "Specify the greeting" ;;
  002) printf 'echo "hello, $1"\n' > greet.sh; done_with "Greet" ;;
  003) case $prompt in
      *"by hand"*) echo "hello hola" > words.txt; done_with "Translate by hand" ;;
      *) echo "hello bonjour" > words.txt; done_with "Translate with a service" ;;
    esac ;;
  004) printf 'cut -d" " -f2 words.txt\n' > choose.sh; done_with "Choose a word" ;;
  *) echo "nobody knows $BACKSTOP_PHASE" >&2; exit 1 ;;
esac
