#include "tools/cortiq-serve/http/chat_page.h"

namespace cortiq::serve {

// One file without anything from elsewhere: a strict content security policy holds for it.
const std::string_view kChatPage = R"page(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>cortiq</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 0 auto; padding: 1rem; display: flex; flex-direction: column;
         min-height: 100vh; box-sizing: border-box; }
  #log { flex: 1; }
  .turn { white-space: pre-wrap; margin: 0 0 1rem; padding: .5rem .75rem; border-radius: .5rem; }
  .user { background: #e8eef7; } .assistant { background: #f3f3f3; } .error { background: #fbe3e3; }
  form { display: flex; gap: .5rem; position: sticky; bottom: 0; background: #fff; padding: .5rem 0; }
  textarea { flex: 1; font: inherit; resize: vertical; } button, select, input { font: inherit; }
</style>
<h1>cortiq</h1>
<p><label>Model <select id="model"></select></label> <label>Key <input id="key" type="password" size="12"></label></p>
<div id="log" aria-live="polite"></div>
<form id="form"><textarea id="text" rows="2" placeholder="Message" aria-label="Message"></textarea>
<button id="send">Send</button><button id="stop" type="button" hidden>Stop</button></form>
<script>
const $ = id => document.getElementById(id), messages = [];
let abort = null;
const headers = () => Object.assign({"Content-Type": "application/json"}, $("key").value ? {Authorization: "Bearer " + $("key").value} : {});
function show(role, text) {
  const turn = document.createElement("div");
  turn.className = "turn " + role;
  turn.textContent = text;
  $("log").append(turn);
  turn.scrollIntoView();
  return turn;
}
async function list() {
  const answer = await fetch("v1/models", {headers: headers()});
  if (!answer.ok) return;
  $("model").replaceChildren(...(await answer.json()).data.map(model => new Option(model.id)));
}
async function send() {
  const text = $("text").value.trim();
  if (!text || abort) return;
  $("text").value = "";
  messages.push({role: "user", content: text});
  show("user", text);
  const turn = show("assistant", "");
  abort = new AbortController();
  $("stop").hidden = false;
  let said = "";
  try {
    const answer = await fetch("v1/chat/completions", {method: "POST", headers: headers(), signal: abort.signal,
      body: JSON.stringify({model: $("model").value || undefined, messages, stream: true})});
    if (!answer.ok) throw new Error((await answer.json()).error.message);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let held = "", part; !(part = await reader.read()).done;) {
      const events = (held + part.value).split("\n\n");
      held = events.pop();
      for (const event of events) {
        if (event === "data: [DONE]") continue;
        const chunk = JSON.parse(event.slice(6));
        if (chunk.error) throw new Error(chunk.error.message);
        said += (chunk.choices[0] && chunk.choices[0].delta.content) || "";
        turn.textContent = said;
      }
    }
    if (!said) throw new Error("The model ended its answer before the first word.");
  } catch (failure) {
    if (failure.name !== "AbortError") { turn.className = "turn error"; turn.textContent = failure.message; }
  }
  if (said) messages.push({role: "assistant", content: said}); else messages.pop();
  abort = null;
  $("stop").hidden = true;
}
$("form").addEventListener("submit", event => { event.preventDefault(); send(); });
$("text").addEventListener("keydown", event => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); send(); } });
$("stop").addEventListener("click", () => abort && abort.abort());
$("key").addEventListener("change", list);
list();
</script>
)page";

} // namespace cortiq::serve
