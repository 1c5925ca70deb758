package replicator.debezium;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.api.java.UDF3;

/**
 * Which template a record is written like, and what differs from its example: replicator/debezium/template.py
 * makes templates and says what their steps mean. One pass over the bytes of key and value, no step is tried again.
 *
 * <p>Compiled by Spark's own Janino when it is needed (replicator/jvm/compiled.py): no lambdas here, and casts by hand.
 */
public final class Alike implements UDF3 {
    private static final long serialVersionUID = 1L;
    private static final byte[] NOTHING = new byte[0];
    private static final byte[] NULL = {'n', 'u', 'l', 'l'};
    private static final byte[] TRUE = {'t', 'r', 'u', 'e'};
    private static final byte[] FALSE = {'f', 'a', 'l', 's', 'e'};
    private static final byte[] ESCAPED = {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'};
    private static final byte[][] NONE = new byte[0][];
    private static final int NO = -1;

    private final String spelled;
    private final int slots;
    private transient Map byTopic;

    /** Templates as template.py spells them, one after the other, the first that matches wins. */
    public Alike(String spelled, int slots) {
        this.spelled = spelled;
        this.slots = slots;
    }

    /** The template's number and, in their slots, the bytes of what was captured; NULL where none matches. */
    public Object call(Object topic, Object key, Object value) {
        if (byTopic == null) byTopic = read(spelled);
        List known = key == null ? null : (List) byTopic.get(topic);
        byte[] text = value == null ? NOTHING : (byte[]) value;
        byte[][] told = null;
        for (int at = 0; known != null && told == null && at < known.size(); at++) {
            told = ((Template) known.get(at)).told((byte[]) key, text, slots);
        }
        return told;
    }

    /** By topic; a task takes apart those that it meets. */
    private static Map read(String spelled) {
        Map found = new HashMap();
        String[] each = spelled.split("\u001d");
        for (int number = 0; number < each.length; number++) {
            String[] parts = each[number].split("\u001e", -1);
            if (!found.containsKey(parts[0])) found.put(parts[0], new ArrayList());
            ((List) found.get(parts[0])).add(new Template(number, parts));
        }
        return found;
    }

    private static final class Template {
        private final byte[] number;
        private final byte[] before;
        private final byte[] after;
        private final byte[][] marks;
        private final String[] parts;
        private Step[] key;
        private Step[] value;

        Template(int number, String[] parts) {
            this.number = bytes(String.valueOf(number));
            this.marks = parts[1].isEmpty() ? NONE : all(parts[1].split("\u001f"));
            this.before = bytes(parts[2]);
            this.after = bytes(parts[3]);
            this.parts = parts;
        }

        byte[][] told(byte[] keyText, byte[] valueText, int slots) {
            if (value == null) {
                key = steps(parts[4]);
                value = steps(parts[5]);
            }
            int[] spans = new int[2 * slots];
            if (!matches(key, keyText, spans, marks) || !matches(value, valueText, spans, marks)) return null;
            byte[][] told = new byte[slots][];
            told[0] = number;
            for (int slot = 1; slot < slots - 1; slot++) told[slot] = cut(valueText, spans, slot, NOTHING, NOTHING);
            told[slots - 1] = cut(valueText, spans, slots - 1, before, after);
            return told;
        }
    }

    /** One step: a letter that says what stands here, with a constant text or a slot. */
    private static final class Step {
        private final char kind;
        private final byte[] text;
        private final int slot;
        private int end;

        Step(String spelled) {
            this.kind = spelled.charAt(0);
            this.text = bytes(spelled.substring(1));
            this.slot = kind == '(' || kind == ')' ? Integer.parseInt(spelled.substring(1)) : 0;
        }
    }

    private static Step[] steps(String spelled) {
        String[] each = spelled.isEmpty() ? new String[0] : spelled.split("\u001f");
        Step[] steps = new Step[each.length];
        int[] open = new int[each.length];
        int depth = 0;
        for (int at = 0; at < each.length; at++) {
            steps[at] = new Step(each[at]);
            if (steps[at].kind == '?') open[depth++] = at;
            if (steps[at].kind == '!') steps[open[--depth]].end = at;
        }
        return steps;
    }

    private static boolean matches(Step[] steps, byte[] text, int[] spans, byte[][] marks) {
        int at = 0;
        for (int next = 0; next < steps.length; next++) {
            Step step = steps[next];
            switch (step.kind) {
                case '=': at = literal(text, at, step.text); break;
                case '?':
                    if (literal(text, at, NULL) != NO) {
                        at += NULL.length;
                        next = step.end;
                    }
                    break;
                case '!': break;
                case '(': spans[2 * step.slot] = at; break;
                case ')': spans[2 * step.slot + 1] = at; break;
                case 'o': at = oneOf(text, at, step.text); break;
                case 's': at = string(text, at); break;
                case 'n': at = number(text, at); break;
                case 'v': at = value(text, at, marks); break;
                case 'a': at = value(text, at, NONE); break;
                case 'l': at = list(text, at, marks); break;
                case 'k': at = ofKey(text, at); break;
                case 'i': at = whole(text, at); break;
                case 'd': at = digits(text, at, 18); break;
                case 'p': at = plain(text, at); break;
                default: throw new IllegalStateException("no step " + step.kind);
            }
            if (at == NO) return false;
        }
        return at == text.length;
    }

    /** A text that begins with no mark, a number, a truth value, or null. */
    private static int value(byte[] text, int at, byte[][] marks) {
        switch (byteAt(text, at)) {
            case '"': return marked(text, at + 1, marks) ? NO : string(text, at);
            case 'n': return literal(text, at, NULL);
            case 't': return literal(text, at, TRUE);
            case 'f': return literal(text, at, FALSE);
            default: return number(text, at);
        }
    }

    private static int list(byte[] text, int at, byte[][] marks) {
        if (byteAt(text, at) != '[' || marked(text, at, marks)) return NO;
        int next = at + 1;
        if (byteAt(text, next) == ']') return next + 1;
        while (true) {
            next = value(text, next, marks);
            if (next == NO) return NO;
            if (byteAt(text, next) == ']') return next + 1;
            if (byteAt(text, next) != ',') return NO;
            next++;
        }
    }

    /** Whether a mark stands here, or is the first of what a list or a map as JSON within the text holds. */
    private static boolean marked(byte[] text, int at, byte[][] marks) {
        int inner = at;
        if (byteAt(text, at) == '[' || byteAt(text, at) == '{') inner++;
        if (inner != at && byteAt(text, inner) == '\\' && byteAt(text, inner + 1) == '"') inner += 2;
        for (int mark = 0; mark < marks.length; mark++) {
            if (literal(text, at, marks[mark]) != NO) return true;
            if (inner != at && literal(text, inner, marks[mark]) != NO) return true;
        }
        return false;
    }

    /** A text between quotes without escapes and braces, a number, or a truth value. */
    private static int ofKey(byte[] text, int at) {
        switch (byteAt(text, at)) {
            case '"':
                int next = at + 1;
                while (isPlain(byteAt(text, next)) && text[next] != '{') next++;
                return byteAt(text, next) == '"' ? next + 1 : NO;
            case 't': return literal(text, at, TRUE);
            case 'f': return literal(text, at, FALSE);
            default: return number(text, at);
        }
    }

    private static int plain(byte[] text, int at) {
        int next = behindPlain(text, at);
        return next == at ? NO : next;
    }

    private static int behindPlain(byte[] text, int at) {
        int next = at;
        while (isPlain(byteAt(text, next))) next++;
        return next;
    }

    private static boolean isPlain(int c) {
        return c >= ' ' && c != '"' && c != '\\';
    }

    private static int string(byte[] text, int at) {
        if (byteAt(text, at) != '"') return NO;
        int next = at + 1;
        while (next != NO) {
            next = behindPlain(text, next);
            int c = byteAt(text, next);
            if (c == '"') return next + 1;
            next = c == '\\' ? escaped(text, next + 1) : NO;
        }
        return NO;
    }

    /** Behind a backslash; of a pair of surrogates no half is a text. */
    private static int escaped(byte[] text, int at) {
        if (byteAt(text, at) != 'u') return oneOf(text, at, ESCAPED);
        int first = byteAt(text, at + 1), second = byteAt(text, at + 2);
        boolean isHex = isHex(first) && isHex(second) && isHex(byteAt(text, at + 3)) && isHex(byteAt(text, at + 4));
        return isHex && (first != 'd' && first != 'D' || second >= '0' && second <= '7') ? at + 5 : NO;
    }

    private static boolean isHex(int c) {
        return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F';
    }

    /** A number of JSON of up to a hundred digits, as many behind the point, and nine of an exponent. */
    private static int number(byte[] text, int at) {
        int next = byteAt(text, at) == '-' ? at + 1 : at;
        next = byteAt(text, next) == '0' ? next + 1 : digits(text, next, 100);
        if (next == NO) return NO;
        if (byteAt(text, next) == '.') {
            next = digits(text, next + 1, 99);
            if (next == NO) return NO;
        }
        if (byteAt(text, next) == 'e' || byteAt(text, next) == 'E') {
            int sign = byteAt(text, next + 1);
            next = digits(text, sign == '+' || sign == '-' ? next + 2 : next + 1, 9);
        }
        return next;
    }

    /** A whole number that a BIGINT holds for sure, spelled as a parser would. */
    private static int whole(byte[] text, int at) {
        int next = byteAt(text, at) == '-' ? at + 1 : at;
        if (byteAt(text, next) == '0') return next == at ? next + 1 : NO;
        return digits(text, next, 18);
    }

    /** Some digits, so many at most. */
    private static int digits(byte[] text, int at, int most) {
        int next = at;
        while (next - at < most && byteAt(text, next) >= '0' && byteAt(text, next) <= '9') next++;
        return next == at ? NO : next;
    }

    private static int oneOf(byte[] text, int at, byte[] allowed) {
        for (int each = 0; each < allowed.length; each++) {
            if (byteAt(text, at) == allowed[each]) return at + 1;
        }
        return NO;
    }

    private static int literal(byte[] text, int at, byte[] wanted) {
        if (text.length - at < wanted.length) return NO;
        for (int next = 0; next < wanted.length; next++) {
            if (text[at + next] != wanted[next]) return NO;
        }
        return at + wanted.length;
    }

    /** A byte from 0 to 255; 0, which stands nowhere in JSON, behind the end. */
    private static int byteAt(byte[] text, int at) {
        return at < text.length ? text[at] & 0xff : 0;
    }

    /** What was captured for a slot, between two texts; NULL where nothing was. */
    private static byte[] cut(byte[] text, int[] spans, int slot, byte[] before, byte[] after) {
        int start = spans[2 * slot], size = spans[2 * slot + 1] - start;
        if (size == 0) return null;
        byte[] found = new byte[before.length + size + after.length];
        System.arraycopy(before, 0, found, 0, before.length);
        System.arraycopy(text, start, found, before.length, size);
        System.arraycopy(after, 0, found, before.length + size, after.length);
        return found;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[][] all(String[] texts) {
        byte[][] found = new byte[texts.length][];
        for (int at = 0; at < texts.length; at++) found[at] = bytes(texts[at]);
        return found;
    }
}
