//! Chat templates: Jinja as Python's transformers runs it, within bounds.
//!
//! A template comes out of a model file and is not trusted. It has no loader, so it reaches no file. Its source is parsed by
//! minijinja, then the program is rewritten (`rewrite`) so that operators, methods and output have Python's meaning and so
//! that everything it produces is charged to a budget (`budget`): instructions, bytes, nesting, time.

mod budget;
mod clock;
mod filters;
mod json;
mod methods;
mod operators;
mod python;
mod rewrite;
mod tests;

use minijinja::machinery::{CodeGenerator, Vm, WhitespaceConfig, make_string_output, parse};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Value};
use serde_json::Value as Json;

use crate::Result;

pub use clock::Clock;

/// The stack of the rendering thread. Nesting is bounded by the budget; this holds what the bounds admit, whatever the
/// caller's own stack. Pages are only taken when touched.
const STACK_BYTES: usize = 64 << 20;
/// Instructions a rendering may execute: a conversation of a thousand messages takes some 300,000.
const FUEL: u64 = 10_000_000;
const MACRO_DEPTH: usize = 200;
const MAX_SOURCE_BYTES: usize = 1 << 20;

pub struct Job<'a> {
    pub source: &'a str,
    pub variables: &'a Json,
    pub clock: Clock,
    /// A character that is printed as it is, even inside Python's repr of a text.
    pub sentinel: Option<char>,
}

/// Renders on a thread of its own; a refusal is one sentence.
pub fn render(job: &Job) -> Result<String> {
    if job.source.len() > MAX_SOURCE_BYTES {
        return Err(format!(
            "the chat template has {} bytes; at most {MAX_SOURCE_BYTES} are accepted",
            job.source.len()
        ));
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let handle = thread
            .spawn_scoped(scope, || render_here(job))
            .map_err(|error| format!("no thread for the chat template: {error}"))?;
        handle.join().unwrap_or_else(|_| Err("the chat template broke the template engine; it is refused".into()))
    })
}

fn render_here(job: &Job) -> Result<String> {
    let input_bytes = job.source.len() + json::rough_size(job.variables);
    budget::start(input_bytes as u64, job.sentinel);
    let outcome = run(job);
    budget::stop();
    outcome.map_err(|error| describe(&error))
}

fn run(job: &Job) -> std::result::Result<String, Error> {
    let whitespace = WhitespaceConfig { keep_trailing_newline: false, lstrip_blocks: true, trim_blocks: true };
    let source = rewrite::source(job.source, whitespace)?;
    let env = environment(job.clock);
    let ast = parse(&source, "chat template", SyntaxConfig::default(), whitespace)?;
    let mut generator = CodeGenerator::new("chat template", &source);
    generator.compile_stmt(&ast);
    drop(ast);
    let (instructions, blocks) = generator.finish();
    if !blocks.is_empty() {
        return Err(invalid("blocks serve inheritance between files, which a chat template has not"));
    }
    let instructions = rewrite::instructions(&instructions);
    let mut text = String::new();
    let mut output = make_string_output(&mut text);
    let root = Value::from_serialize(job.variables);
    Vm::new(&env).eval(&instructions, root, &blocks, &mut output, AutoEscape::None)?;
    Ok(text)
}

fn environment<'a>(clock: Clock) -> Environment<'a> {
    let mut env = Environment::new();
    env.set_fuel(Some(FUEL));
    env.set_recursion_limit(MACRO_DEPTH);
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_unknown_method_callback(methods::unknown);
    env.set_formatter(|out, _, value| {
        if let Some(text) = value.as_str() {
            budget::charge_bytes(text.len())?;
            return out.write_str(text).map_err(Error::from);
        }
        out.write_str(&python::text(value)?).map_err(Error::from)
    });
    operators::register(&mut env);
    methods::register(&mut env);
    filters::register(&mut env);
    tests::register(&mut env);
    env.add_function("raise_exception", |message: Value| -> std::result::Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, format!("{REFUSED}{}", python::text(&message)?)))
    });
    env.add_function("strftime_now", move |format: &str| -> std::result::Result<String, Error> {
        clock.format(format).map_err(|message| Error::new(ErrorKind::InvalidOperation, message))
    });
    env.add_function("visible_text", visible_text);
    env.add_function("dict", dict);
    env
}

/// The text of a message's content: itself, or its text parts joined.
fn visible_text(content: Value) -> std::result::Result<Value, Error> {
    if content.as_str().is_some() || content.is_undefined() || content.is_none() {
        return Ok(content);
    }
    let mut text = String::new();
    for part in content.try_iter()? {
        match part.as_str() {
            Some(plain) => text.push_str(plain),
            None => text.push_str(part.get_attr("text")?.as_str().unwrap_or_default()),
        }
    }
    Ok(Value::from(text))
}

fn dict(base: Rest<Value>, more: Kwargs) -> std::result::Result<Value, Error> {
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    for map in base.iter() {
        for key in map.try_iter()? {
            let value = map.get_item(&key)?;
            pairs.push((key, value));
        }
    }
    for name in more.args() {
        pairs.push((Value::from(name), more.get(name)?));
    }
    Ok(pairs.into_iter().collect())
}

/// Marks the sentence of raise_exception, which is the template's own word to the user.
const REFUSED: &str = "\u{1}";

fn describe(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    let mut messages = vec![];
    let mut line = error.line();
    loop {
        if let Some(error) = cause.downcast_ref::<Error>() {
            let detail = error.detail().unwrap_or_default();
            if let Some(own) = detail.split_once(REFUSED) {
                return format!("the chat template refuses these messages: {}", own.1);
            }
            line = error.line().or(line);
            messages.push(if detail.is_empty() { error.kind().to_string() } else { detail.to_owned() });
        } else {
            messages.push(cause.to_string());
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => break,
        }
    }
    let place = line.map_or(String::new(), |line| format!(", line {line}"));
    let mut seen = messages.join(": ").replace('\n', " ");
    if error.kind() == ErrorKind::OutOfFuel {
        seen = "it runs longer than a chat template may".into();
    }
    format!("the chat template cannot be rendered{place}: {seen}")
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}
