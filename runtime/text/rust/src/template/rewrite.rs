//! Two rewritings: of the source, for what the parser does not know (generation tags, tuples), and of the compiled program,
//! for Python's operators and for charging the budget. In the program an operator takes its operands from the stack just as
//! a call with as many arguments does, so one replaces the other.

use minijinja::Error;
use minijinja::Value;
use minijinja::machinery::{Instruction, Instructions, Token, WhitespaceConfig, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::{invalid, methods};

/// Words after which a parenthesis opens a group or tuple, not a call.
const KEYWORDS: [&str; 16] = [
    "and",
    "call",
    "do",
    "elif",
    "else",
    "for",
    "if",
    "in",
    "is",
    "not",
    "or",
    "print",
    "recursive",
    "return",
    "set",
    "with",
];

/// Bounds of the source: parser and compiler recurse along chains of operators and of `elif`.
const MAX_TAGS: usize = 10_000;
const MAX_TAG_TOKENS: usize = 10_000;

struct Open {
    offset: usize,
    group: bool,
    commas: usize,
    empty: bool,
}

/// `{% generation %}` becomes a block that does nothing, with its whitespace marks; a tuple `(a, b)` becomes
/// `__py_tuple(a, b)`, since the engine would print it as a list. Beside a `*`, a number `n` becomes `(n|int)`: the compiler
/// would compute a product of constants itself, without a bound.
pub fn source(source: &str, whitespace: WhitespaceConfig) -> Result<String, Error> {
    let mut edits: Vec<(usize, usize, &str)> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut before: Option<Token> = None;
    let mut tag: Option<&str> = None;
    let mut numbers: Vec<(usize, usize)> = Vec::new(); // integers of the tag
    let mut multiplies = false;
    let (mut tags, mut tag_tokens) = (0, 0);
    let mut tag_target = false; // inside the targets of `for` and `set`, where a tuple is a pattern
    for item in tokenize(source, false, SyntaxConfig::default(), whitespace) {
        let (token, span) = item?;
        let offset = span.start_offset as usize;
        if let Some(top) = open.last_mut()
            && !matches!(token, Token::ParenClose)
        {
            top.empty = false;
        }
        tag_tokens += 1;
        if tags > MAX_TAGS || tag_tokens > MAX_TAG_TOKENS {
            return Err(invalid("it has more tags, or more in one tag, than a chat template may"));
        }
        match &token {
            Token::BlockStart | Token::VariableStart => {
                tags += 1;
                tag_tokens = 0;
                multiplies = false;
                numbers.clear();
                open.clear();
                tag = None;
                tag_target = false;
            }
            Token::Ident(word) => {
                if matches!(before, Some(Token::BlockStart)) {
                    tag = Some(word);
                    tag_target = matches!(*word, "for" | "set");
                    match *word {
                        "generation" => edits.push((offset, word.len(), "if true")),
                        "endgeneration" => edits.push((offset, word.len(), "endif")),
                        _ => {}
                    }
                } else if tag == Some("for") && *word == "in" {
                    tag_target = false;
                }
            }
            Token::Assign if tag == Some("set") && open.is_empty() => tag_target = false,
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                let callee = match &before {
                    Some(Token::Ident(word)) => !KEYWORDS.contains(word) || tag == Some("call") && *word == "call",
                    Some(Token::ParenClose | Token::BracketClose) => true,
                    _ => false,
                };
                let group = matches!(token, Token::ParenOpen) && !callee && !tag_target;
                open.push(Open { offset, group, commas: 0, empty: true });
            }
            Token::Mul => multiplies = true,
            Token::Int(_) | Token::Int128(_) if !matches!(before, Some(Token::Dot)) => {
                numbers.push((offset, span.end_offset as usize));
            }
            Token::BlockEnd | Token::VariableEnd if multiplies => {
                for (start, end) in numbers.drain(..) {
                    edits.push((start, 0, "("));
                    edits.push((end, 0, "|int)"));
                }
            }
            Token::Comma => {
                if let Some(top) = open.last_mut() {
                    top.commas += 1;
                }
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                if let Some(closed) = open.pop()
                    && closed.group
                    && (closed.commas > 0 || closed.empty)
                {
                    edits.push((closed.offset, 0, "__py_tuple"));
                }
            }
            _ => {}
        }
        before = Some(token);
    }
    edits.sort_by_key(|edit| edit.0);
    let mut text = String::with_capacity(source.len() + 16 * edits.len());
    let mut at = 0;
    for (offset, length, replacement) in edits {
        text.push_str(&source[at..offset]);
        text.push_str(replacement);
        at = offset + length;
    }
    text.push_str(&source[at..]);
    Ok(text)
}

/// The program with Python's operators and with charges.
pub fn instructions<'s>(program: &Instructions<'s>) -> Instructions<'s> {
    let mut index = Vec::new(); // of each old instruction's first new one
    let mut list: Vec<(Instruction<'s>, u16)> = Vec::new();
    let mut at = 0;
    while let Some(instruction) = program.get(at) {
        index.push(list.len() as u32);
        let line = program.get_line(at).unwrap_or(0).min(u16::MAX as usize) as u16;
        translate(instruction, &mut |instruction| list.push((instruction, line)));
        at += 1;
    }
    index.push(list.len() as u32);
    let moved = |target: u32| index.get(target as usize).copied().unwrap_or(list.len() as u32);
    let mut result = Instructions::new(program.name(), program.source());
    for (instruction, line) in &list {
        let instruction = match instruction {
            Instruction::Jump(target) => Instruction::Jump(moved(*target)),
            Instruction::JumpIfFalse(target) => Instruction::JumpIfFalse(moved(*target)),
            Instruction::JumpIfFalseOrPop(target) => Instruction::JumpIfFalseOrPop(moved(*target)),
            Instruction::JumpIfTrueOrPop(target) => Instruction::JumpIfTrueOrPop(moved(*target)),
            Instruction::Iterate(target) => Instruction::Iterate(moved(*target)),
            Instruction::BuildMacro(name, target, flags) => Instruction::BuildMacro(name, moved(*target), *flags),
            other => other.clone(),
        };
        result.add_with_line(instruction, *line);
    }
    result
}

fn translate<'s>(instruction: &Instruction<'s>, emit: &mut dyn FnMut(Instruction<'s>)) {
    let charge = Instruction::CallFunction("__py_charge", Some(1));
    match instruction {
        Instruction::Add => emit(Instruction::CallFunction("__py_add", Some(2))),
        Instruction::Mul => emit(Instruction::CallFunction("__py_mul", Some(2))),
        Instruction::Rem => emit(Instruction::CallFunction("__py_mod", Some(2))),
        Instruction::IntDiv => emit(Instruction::CallFunction("__py_floordiv", Some(2))),
        Instruction::StringConcat => emit(Instruction::CallFunction("__py_concat", Some(2))),
        Instruction::EmitRaw(text) => {
            emit(Instruction::LoadConst(Value::from(*text)));
            emit(Instruction::Emit);
        }
        Instruction::SetAttr(_) => {
            emit(Instruction::Swap);
            emit(Instruction::CallFunction("__py_settable", Some(1)));
            emit(Instruction::Swap);
            emit(instruction.clone());
        }
        Instruction::CallMethod(name, arguments) => {
            match methods::function_of(name) {
                Some(function) => emit(Instruction::CallFunction(function, *arguments)),
                None => emit(instruction.clone()),
            }
            emit(charge);
        }
        Instruction::ApplyFilter(..)
        | Instruction::CallFunction(..)
        | Instruction::CallObject(_)
        | Instruction::PerformTest(..)
        | Instruction::In
        | Instruction::Eq
        | Instruction::Ne
        | Instruction::Gt
        | Instruction::Gte
        | Instruction::Lt
        | Instruction::Lte
        | Instruction::Slice
        | Instruction::EndCapture
        | Instruction::BuildList(_)
        | Instruction::BuildMap(_) => {
            emit(instruction.clone());
            emit(charge);
        }
        other => emit(other.clone()),
    }
}
