var C,hn,Ri,pe,At,Ze,_n,Ve,bn,xt,kt,yn,De=Symbol.for("pv"),et={},tt=[],Mi=/^m(i|n|o|s|text|space)$/,Ct=Array.isArray,vn=tt.slice,Se=Object.assign;function we(e){
e&&e.parentNode&&e.remove()}function ze(e,t,n,r,i){var s={type:e,props:t,key:n,ref:r,__k:null,__:null,__b:0,__e:null,__c:null,constructor:De,__v:i||++hn,__i:-1,__u:0};return!i&&C.vnode&&C.
vnode(s),s}function S(e){return e.children}function Xe(e,t){this.props=e,this.context=t,this.__g=0}function me(e,t){if(t==null)return e.__&&me(e.__,e.__i+1);for(var n;t<e.
__k.length;t++)if((n=e.__k[t])&&n.__e)return n.__e;return typeof e.type!="function"||e.props.__P?null:me(e)}function Fi(e){var t,n=e.__v,r=n.__e,i=[],s=[],a=e.__P;
a&&((t=Se({constructor:De},n)).__v=n.__v+1,C.vnode&&C.vnode(t),Nt(a,t,n,e.__n,a.namespaceURI,32&n.__u?[r]:null,i,r||me(n),32&n.__u,s),t.__v=n.__v,t.__.__k[t.__i]=
t,En(i,t,s),n.__=n.__e=null,t.__e!=r&&wn(t))}function wn(e){if((e=e.__)&&e.__c&&!e.props.__P)return e.__e=null,e.__k.some(function(t){return t&&(e.__e=t.__e)}),
wn(e)}function Et(e){(8&e.__g||(e.__g|=8,pe.push(e),Ze++))&&At==C.debounceRendering||((At=C.debounceRendering)||queueMicrotask)(Sn)}function Sn(){try{for(var e,
t=1;pe.length;)pe.length>t&&pe.sort(_n),e=pe.shift(),t=pe.length,8&e.__g&&Fi(e)}finally{(Ze=pe.length)&&(At||queueMicrotask)(Sn)}}function Tn(e,t,n,r,i,s,a,c,l,d,u){
var p,m,f,g,_,h,y=r.__k||tt,v=t.length;for(l=Di(n,t,y,l,v),p=0;p<v;p++)(f=n.__k[p])!=null&&(m=~f.__i&&y[f.__i]||et,f.__i=p,h=Nt(e,f,m,i,s,a,c,l,d,u),g=f.__e,(m.
ref!=f.ref||8&m.__u)&&(m.ref&&It(m.ref,null,f,m),f.ref&&u.push(f.ref,f.__c||g,f)),_=_||g,4&f.__u?(l=An(f,l,e,!m.__v),m.__e&&(m.__e=null)):typeof f.type=="functi\
on"&&h!==void 0?l=h:g&&(l=g.nextSibling),f.__u&=-21);return n.__e=_,l}function Di(e,t,n,r,i){var s,a,c,l,d,u,p,m,f,g=n.length,_=g,h=0,y=0,v=e.__k=Array(i);for(s=
0;s<i;s++)(a=t[s])!=null&&typeof a!="boolean"&&typeof a!="function"?(typeof a!="object"||a.constructor===String?a=v[s]=ze(null,a):Ct(a)?a=v[s]=ze(S,{children:a}):
a.constructor===De&&a.__b?a=v[s]=ze(a.type,a.props,a.key,a.ref,a.__v):v[s]=a,l=s+h,a.__=e,a.__b=e.__b+1,c=null,~(d=a.__i=Bi(a,n,l,_))&&(_--,(c=n[d])&&(c.__u|=2)),
c&&c.__v?(a.__u|=16,d==l-1?h--:d==l+1?h++:d!=l&&(d>l?h--:h++,y=1)):(~d||(i>g?h--:i<g&&h++),typeof a.type!="function"&&(a.__u|=4))):v[s]=null;if(y){for(u=[],p=[],
s=0;s<i;s++)if((a=v[s])&&16&a.__u){for(h=0,m=u.length;h<m;)u[f=h+m>>1]<a.__i?h=f+1:m=f;u[h]=a.__i,p[s]=h+1}for(h=u.length;s--;)p[s]&&(p[s]==h?h--:v[s].__u|=4)}if(_)
for(s=0;s<g;s++)!(c=n[s])||2&c.__u||(c.__e==r&&(r=me(c)),Ot(c,c));return r}function An(e,t,n,r){var i,s,a,c;if(typeof e.type=="function"){if(e.props.__P)return t;
if(i=e.__k)for(s=0;s<i.length;s++)i[s]&&(i[s].__=e,t=An(i[s],t,n,!1));return t}for(t&&!t.parentNode&&(t=me(e))&&!t.parentNode&&(t=null),a=e.__e,c=t;c&&c.nodeType==
8;)c=c.nextSibling;for(a!=c&&(!r&&n.moveBefore&&a.parentNode?n.moveBefore(a,t):n.insertBefore(a,t||null)),t=a;(t=t&&t.nextSibling)&&t.nodeType==8&&!t.data.startsWith(
"$s"););return t}function Bi(e,t,n,r){var i,s=e.key,a=e.type,c=t[n],l=c&&!(2&c.__u);if(c===null&&s==null||l&&s==c.key&&a==c.type)return n;if(r>(l?1:0)){for(i=n-1;i>=0;i--)if((c=
t[i])&&!(2&c.__u)&&s==c.key&&a==c.type)return i;for(i=n+1;i<t.length;i++)if((c=t[i])&&!(2&c.__u)&&s==c.key&&a==c.type)return i}return-1}function gn(e,t,n){n==null&&
(n=""),t[0]=="-"?e.setProperty(t,n):e[t]=n}function Ye(e,t,n,r,i){var s,a;if(t=="style")if(typeof n=="string")e.style.cssText=n;else{if(typeof r=="string"&&(e.style.
cssText=r=""),r)for(t in r)n&&t in n||gn(e.style,t);if(n)for(t in n)r&&n[t]==r[t]||gn(e.style,t,n[t])}else if(t[0]=="o"&&t[1]=="n")typeof n!="function"&&(n=null),
typeof r!="function"&&(r=null),(e.__e||(e.__e={}))[t]=n,n&&r||(a=kt[t]||(kt[t]=Ui(t)),(e.__a||(e.__a={}))[t]=xt,s=t!=(t=t.replace(bn,"$1")),(t=t.slice(2))[0]<"a"&&
(t=t.toLowerCase()),n?e.addEventListener(t,a,s):e.removeEventListener(t,a,s));else{if(i=="http://www.w3.org/2000/svg")t=t.replace(/xlink(H|:h)/,"h").replace(/sName$/,
"s");else if(t!="width"&&t!="height"&&t!="href"&&t!="list"&&t!="form"&&t!="tabIndex"&&t!="download"&&t!="rowSpan"&&t!="colSpan"&&t!="role"&&t!="popover"&&t in e)
try{return void(e[t]=n??"")}catch{}if(typeof n=="function")return;n==null||n===!1&&t[4]!="-"?e.removeAttribute(t):e.setAttribute(t,t=="popover"&&n==1?"":n)}}function Ui(e){
return function(t){var n=this.__e;if(n){if(n=n[e],t[Ve]==null)t[Ve]=xt++;else if(t[Ve]<this.__a[e])return;return n(C.event?C.event(t):t)}}}function Nt(e,t,n,r,i,s,a,c,l,d){
var u,p,m,f,g,_,h,y,v,w,N,A,P,Q,Z,mn,fe,ve,le=t.type;if(t.constructor!==De)return null;128&n.__u&&(l=32&n.__u,u=n.__c.__z)&&(t.__u|=l,p=s=[],u.nodeType==8?c=Je(
u,s):s.push(u),c=s[0]||c),(u=C.__b)&&u(t);e:if(typeof le=="function"){m=a.length;try{if(y=t.props,v=(u=le.prototype)&&u.render,w=(u=le.contextType)&&r[u.__c],N=
u?w?w.props.value:u.__:r,(f=n.__c)?(t.__c=f,2&f.__g&&(f.__g|=1)):(v?t.__c=f=new le(y,N):(t.__c=f=new Xe(y,N),f.constructor=le,f.render=qi),w&&w.sub(f),f.state||
(f.state={}),f.__n=r,f.__g|=8,f.__h=[],f.__k=[]),v&&(f.__s||(f.__s=f.state),le.getDerivedStateFromProps&&(f.__s==f.state&&(f.__s=Se({},f.__s)),Se(f.__s,le.getDerivedStateFromProps(
y,f.__s)))),g=f.props,_=f.state,f.__v=t,n.__c){if(y!==g&&v&&!le.getDerivedStateFromProps&&f.componentWillReceiveProps&&f.componentWillReceiveProps(y,N),t.__v==n.
__v&&!(8&f.__g)||!(4&f.__g)&&f.shouldComponentUpdate&&f.shouldComponentUpdate(y,f.__s,N)===!1){t.__v!=n.__v&&(f.props=y,f.state=f.__s,f.__g&=-9),t.__e=n.__e,t.__k=
n.__k,t.__k.some(function(ee){ee&&(ee.__=t)}),tt.push.apply(f.__h,f.__k),f.__k=[],f.__h.length&&a.push(f),c=me(n);break e}f.componentWillUpdate&&f.componentWillUpdate(
y,f.__s,N),v&&f.componentDidUpdate&&f.__h.push(function(){f.componentDidUpdate(g,_,h)})}else v&&!le.getDerivedStateFromProps&&f.componentWillMount&&f.componentWillMount(),
v&&f.componentDidMount&&f.__h.push(f.componentDidMount);f.context=N,f.props=y,f.__P=e,f.__g&=-5,A=C.__r,P=v?25:0;do f.__g&=-9,A&&A(t),u=f.render(f.props,f.state=
f.__s,f.context);while(8&f.__g&&++P<25);v&&(tt.push.apply(f.__h,f.__k),f.__k=[]),f.state=f.__s,f.getChildContext&&(r=Se({},r,f.getChildContext())),v&&n.__c&&f.getSnapshotBeforeUpdate&&
(h=f.getSnapshotBeforeUpdate(g,_)),Q=u&&u.type===S&&u.key==null?u.props.children:u,y.__P&&(u=c,i=(e=y.__P).namespaceURI,l=s=null,n.props&&n.props.__P!=e&&(n.__k.
some(function(ee){ee&&Ot(ee,ee)}),n.__k=null),c=n.__k?me(n,0):null),c=Tn(e,Ct(Q)?Q:[Q],t,n,r,i,s,a,c,l,d),y.__P&&(t.__e=null,c=u),t.__u&=-161,p&&p.some(we),f.__h.
length&&a.push(f),1&f.__g&&(f.__g&=-4)}catch(ee){if(a.length=m,t.__v=null,l||s)if(ee&&ee.then){if(t.__u|=128|l,s){for(~(fe=s.indexOf(c||void 0))||(fe=s.length);(ve=
s[fe-1])&&ve.nodeType==8;)fe--;for(;fe<s.length;fe++)if(ve=s[fe])if(s[fe]=null,Z){if(ve==mn)break}else{if(ve.nodeType!=8)break;ve.data.startsWith("$s")&&(mn=Je(
Z=ve))}}if(!Z){for(;c&&c.nodeType==8&&c.nextSibling;)c=c.nextSibling;Z=c}(u=Je(Z=t.__c.__z||(t.__c.__z=Z)))?(t.__e=Z,c=u):t.__e=c,c=c&&c.nextSibling}else s&&s.some(
we);else t.__e=n.__e;t.__k||(t.__k=n.__k||[]),ee&&ee.then||kn(t),C.__e(ee,t,n)}}else c=t.__e=Gi(n.__e,t,n,r,i,s,a,l,d,e);return(u=C.diffed)&&u(t),c}function Je(e,t){
if(e&&e.nodeType==8&&e.data.startsWith("$s"))for(var n=1;e=e.nextSibling;){if(e.nodeType==8){if(e.data.startsWith("$s"))n++;else if(e.data.startsWith("/$s")&&!--n)
return e}t&&t.push(e)}}function kn(e){e&&(e.__c&&(e.__c.__g|=4),e.__k&&e.__k.some(kn))}function En(e,t,n){for(var r=0;r<n.length;)It(n[r++],n[r++],n[r++]);C.__c&&
C.__c(t,e),e.some(function(i){try{e=i.__h,i.__h=[],e.some(function(s){s.call(i)})}catch(s){C.__e(s,i.__v)}})}function Gi(e,t,n,r,i,s,a,c,l,d){var u,p,m,f,g,_,h,
y,v=n.props||et,w=t.props,N=t.type;if(N=="svg"?i="http://www.w3.org/2000/svg":N=="math"?i="http://www.w3.org/1998/Math/MathML":i||(i="http://www.w3.org/1999/xht\
ml"),s){for(u=0;u<s.length;u++)if((g=s[u])&&(N?g.localName==N:g.nodeType==3)){e=g,s[u]=null;break}}if(!e){if(y=d.ownerDocument||document,!N)return y.createTextNode(
w);e=y.createElementNS(i,N,w.is?w:d),c&&(C.__m&&C.__m(t,s),c=!1),s=null}if(N){if(d=N=="template"&&e.content||e,s=N=="textarea"&&w.defaultValue!=null?null:s&&vn.
call(d.childNodes),!c&&s)for(v={},u=0;u<e.attributes.length;u++)v[(g=e.attributes[u]).name]=g.value;for(u in v)g=v[u],u=="dangerouslySetInnerHTML"?m=g:u=="child\
ren"||u in w||u=="value"&&"defaultValue"in w||u=="checked"&&"defaultChecked"in w||Ye(e,u,null,g,i);for(u in w)g=w[u],u=="children"?f=g:u=="dangerouslySetInnerHT\
ML"?p=g:u=="value"?_=g:u=="checked"?h=g:c&&typeof g!="function"||v[u]===g||Ye(e,u,g,v[u],i);p?(c||m&&(p.__html==m.__html||p.__html==e.innerHTML)||(e.innerHTML=p.
__html),t.__k=[]):(m&&(e.textContent=""),(N=="foreignObject"||i=="http://www.w3.org/1998/Math/MathML"&&Mi.test(N))&&(i="http://www.w3.org/1999/xhtml"),Tn(d,Ct(f)?
f:[f],t,n,r,i,s,a,s?s[0]:n.__k&&me(n,0),c,l),s&&s.some(we)),c&&N!="textarea"||(u="value",N=="progress"&&_==null?e.removeAttribute(u):_==null||_===e[u]&&(N!="pro\
gress"||_)||Ye(e,u,_,v[u],i),u="checked",h!=null&&h!=e[u]&&Ye(e,u,h,v[u],i))}else v===w||c&&e.data==w||(e.data=w);return e}function It(e,t,n,r){try{typeof e=="f\
unction"?t?t.__x=e(t)||1:r&&(r=r.__c||r.__e)&&(t=r.__x)&&(r.__x=null,typeof t=="function"?t():e(null)):e.current=t}catch(i){C.__e(i,n)}}function Ot(e,t,n){var r,
i,s,a;if(C.unmount&&C.unmount(e),!(r=e.ref)||r.current&&r.current!=e.__e||It(r,null,t,e),r=e.__c){if(r.componentWillUnmount)try{r.componentWillUnmount()}catch(c){
C.__e(c,t)}r.__P=r.__n=null}if(r=e.__k)for(a=0;a<r.length;a++)r[a]&&Ot(r[a],t,typeof e.type!="function"||n&&!e.props.__P);!n&&(r=e.__c)&&(r=r.__z)&&(i=Je(r,s=[]))&&
(r==e.__e&&s.some(we),we(i),we(r)),n||we(e.__e),e.__e=e.__c=e.__=null}function qi(e,t,n){return this.constructor(e,n)}function xn(e,t){var n,r,i,s;C.__&&C.__(e,
t),t.nodeType==9&&(t=t.documentElement),r=(n=e&&32&e.__u)?null:t.__k,t.__k=ze(S,{children:[e]}),i=[],s=[],Nt(t,t.__k,r||et,et,t.namespaceURI,r?null:t.firstChild?
vn.call(t.childNodes):null,i,r?r.__e:t.firstChild,n,s),En(i,t.__k,s),t.__k.props.children=null}function Cn(e){function t(n){var r,i;return this.getChildContext||(r=new Set,(i={})[t.__c]=this,this.getChildContext=function(){return i},this.shouldComponentUpdate=
function(s){this.props.value!=s.value&&r.forEach(function(a){a.__g|=4,Et(a)})},this.sub=function(s){r.add(s);var a=s.componentWillUnmount;s.componentWillUnmount=
function(){r.delete(s),a&&a.call(s)}}),n.children}return t.__c="__cC"+yn++,t.__=e,t.Provider=(t.Consumer=function(n,r){return n.children(r)}).contextType=t,t}C={__e:function(e,t,n,r){for(var i,s,a;t=t.__;)if((i=t.__c)&&!(1&i.__g)){i.__g|=4;try{if((a=(s=i.constructor)&&s.getDerivedStateFromError)&&i.setState(s.getDerivedStateFromError(
e)),i.componentDidCatch&&(i.componentDidCatch(e,r||{}),a=1),a&&8&i.__g)return void(i.__g|=2)}catch(c){e=c}}throw Ze=0,e}},hn=0,Ri=function(e){return e!=null&&e.
constructor===De},Xe.prototype.setState=function(e,t){var n=this.__s;n&&n!=this.state||(n=this.__s=Se({},this.state)),typeof e=="function"&&(e=e(Se({},n),this.props)),
e&&(Se(n,e),this.__v&&(t&&this.__k.push(t),Et(this)))},Xe.prototype.forceUpdate=function(e){this.__v&&(this.__g|=4,e&&this.__h.push(e),Et(this))},Xe.prototype.render=
S,pe=[],Ze=0,_n=function(e,t){return e.__v.__b-t.__v.__b},Ve=Symbol(),bn=/(PointerCapture)$|Capture$/i,xt=0,kt={},yn=0;var ke,R,Lt,Nn,Pt=Object.is,nt=0,Dn=[],$t=[],M=C,In=M.__b,On=M.__r,Ln=M.diffed,Pn=M.__c,$n=M.unmount,Rn=M.__;function rt(e,t){M.__h&&M.__h(R,e,nt||t),nt=0;var n=R.
__H||(R.__H={__:[],__h:[]});return e>=n.__.length&&n.__.push({}),n.__[e]}function O(e){return nt=1,Mt(Gn,e)}function Mt(e,t,n){var r=rt(ke++,2);if(r.t=e,!r.__c&&
(r.__=[n?n(t):Gn(void 0,t),function(s){var a=(r.__N||r.__)[0],c=r.t(a,s);Pt(a,c)||(r.__N=[c,r.__[1]],r.__c.setState({}))}],r.__c=R,!R.__f)){R.__f=!0;var i=R.shouldComponentUpdate;
R.shouldComponentUpdate=function(s,a,c){var l=this.__H;if(!l)return!0;var d=!1,u=this.props!=s;if(l.__.some(function(m){m.__N&&(d=!0,Pt(m.__[0],m.__N[0])||(u=!0))}),
i){var p=i.call(this,s,a,c);return d?p||u:p}return!d||u}}return r.__}function q(e,t){var n=rt(ke++,3);!M.__s&&Un(n.__H,t)&&(n.__P=!0,n.__=e,n.u=t,R.__H.__h.push(
n))}function ue(e){return nt=5,x(function(){return{current:e}},[])}function x(e,t){var n=rt(ke++,7);return Un(n.__H,t)&&(n.__=e(),n.__H=t),n.__}function Bn(e){var t=R.context[e.__c],n=rt(ke++,9);return n.c=e,t?(n.__==null&&(n.__=!0,t.sub(R)),t.props.value):e.__}function Ki(){var e;do{for(;e=$t.shift();)try{Be(e)}catch(n){M.__e(n,{__:(e=e.__P)&&e.__v})}for(;e=Dn.shift();){var t=e.__H;if(e.__P&&t)try{t.__h.some(Be),t.__h.
some(Rt),t.__h=[]}catch(n){t.__h=[],M.__e(n,e.__v)}}}while($t.length)}M.__b=function(e){R=null,In&&In(e)},M.__=function(e,t){e&&t.__k&&t.__k.__m&&(e.__m=t.__k.__m),
Rn&&Rn(e,t)},M.__r=function(e){On&&On(e),ke=0;var t=(R=e.__c).__H;t&&(Lt==R?R.__h=[]:(t.__h.some(Be),t.__h.some(Rt),ke=0),t.__h=[],t.__.some(function(n){n.__N&&
(n.__=n.__N),n.u=n.__N=void 0})),Lt=R},M.diffed=function(e){Ln&&Ln(e);var t=e.__c;t&&t.__H&&(t.__H.__h.length&&Fn(Dn.push(t)),t.__H.__.some(function(n){n.u&&(n.
__H=n.u)})),Lt=R=null},M.__c=function(e,t){t.some(function(n){try{n.__h.some(Be),n.__h=n.__h.filter(function(r){return!r.__||Rt(r)})}catch(r){n.__h=[function(){
throw r}]}}),Pn&&Pn(e,t)},M.unmount=function(e){$n&&$n(e);var t,n,r=e.__c;r&&r.__H&&(r.__H.__.some(function(i){try{if(i.__P&&i.__c){if(n===void 0){for(n=e.__;n&&
(!n.__c||!n.__c.__P);)n=n.__;n=n&&n.__c}i.__P=n,Fn($t.push(i))}else Be(i)}catch(s){t=s}}),r.__H=void 0,t&&M.__e(t,r.__v))};var Mn=typeof requestAnimationFrame==
"function";function ji(e){var t,n=function(){clearTimeout(r),Mn&&cancelAnimationFrame(t),setTimeout(e)},r=setTimeout(n,35);Mn&&(t=requestAnimationFrame(n))}function Fn(e){
e!=1&&Nn==M.requestAnimationFrame||((Nn=M.requestAnimationFrame)||ji)(Ki)}function Be(e){var t=R,n=e.__c;typeof n=="function"&&(e.__c=void 0,n()),R=t}function Rt(e){
var t=R;e.__c=e.__(),R=t}function Un(e,t){return!e||e.length!=t.length||t.some(function(n,r){return!Pt(n,e[r])})}function Gn(e,t){return typeof t=="function"?t(
e):t}var it=class{decoder=new TextDecoder;rest="";take(t){let n=(this.rest+this.decoder.decode(t,{stream:!0})).split(`
`);if(this.rest=n.pop()??"",this.rest.length>4194304)throw new Error("the watch sent a line that is too long");return n.filter(Boolean).map(r=>JSON.parse(r))}};var Ue="/apis/visibility.tutti.dev/v1alpha1",qn=120,Wi=100,V=class extends Error{constructor(n,r,i=0,s){super(r);this.status=n;this.retryAfterMs=i;this.noUser=s}status;retryAfterMs;noUser},
ot=class{constructor(t,n){this.token=t;this.onUser=n}token;onUser;known=new Map;async check(){await this.fetched(Ue,{})}async list(t,n){let r=`${Ue}/${t}`,i=this.
known.get(r),s=i?{"If-None-Match":i.etag}:{},a=await this.fetched(r,{headers:s,signal:n});if(a.status===304&&i)return i.listed;let c=await this.read(r,a,n),l=a.
headers.get("ETag");return l&&this.known.set(r,{etag:l,listed:c}),c}async read(t,n,r){let i=/"(.*)"/.exec(n.headers.get("Warning")??"")?.[1]??"",s=await n.json(),
a={items:s.items,version:s.metadata.resourceVersion??"",warning:i};for(let c=0;s.metadata.continue&&c<Wi;c++){let l=`${t}?continue=${encodeURIComponent(s.metadata.
continue)}`;s=await(await this.fetched(l,{signal:r})).json(),a.items=a.items.concat(s.items)}return a}async get(t,n){return await(await this.fetched(`${Ue}/${t}`,
{signal:n})).json()}async*watch(t,n,r){let i=new URLSearchParams({watch:"true",resourceVersion:n,allowWatchBookmarks:"true",timeoutSeconds:String(qn)}),s=AbortSignal.
any([r,AbortSignal.timeout((qn+10)*1e3)]),c=(await this.fetched(`${Ue}/${t}?${i}`,{signal:s})).body.getReader(),l=new it;for(;;){let{done:d,value:u}=await c.read();
if(d)return;yield l.take(u)}}async fit(t,n,r){let i=JSON.stringify({apiVersion:"visibility.tutti.dev/v1alpha1",kind:"Fit",metadata:{name:"question"},spec:{manifests:n}}),
s=`${Ue}/namespaces/${encodeURIComponent(t)}/fits`,a={"Content-Type":"application/json"};return await(await this.fetched(s,{method:"POST",headers:a,body:i,signal:r})).
json()}async fetched(t,n){let r=new Headers(n.headers);r.set("Accept","application/json"),this.token&&r.set("Authorization",`Bearer ${this.token}`);let i;try{i=
await fetch(t,{...n,headers:r,cache:"no-store",redirect:"manual"})}catch(a){throw n.signal?.aborted?a:new V(0,"the server does not answer")}let s=await Hi(i);if((!s||
s.noUser)&&this.onUser(s?.noUser),s)throw s;return i}};async function Hi(e){let t=s=>new V(s,"the login has ended",0,"login wanted");if(e.type==="opaqueredirect")
return t(e.status);if(e.status===304)return;if(e.ok)return Qi(e)?void 0:t(e.status);let n=await Yi(e),r=Number(e.headers.get("Retry-After")??0)*1e3||0;if(e.status!==
401)return new V(e.status,n||Vi(e),r);if(!n)return t(401);let i=/\berror="?invalid_token/.test(e.headers.get("WWW-Authenticate")??"");return new V(401,n,0,i?"to\
ken refused":"token wanted")}function Qi(e){return/^application\/json\b/.test(e.headers.get("Content-Type")??"")}async function Yi(e){try{let{kind:t,message:n}=await e.
json();return t==="Status"&&typeof n=="string"?n:""}catch{return""}}function Vi(e){return`${e.status} ${e.statusText}`.trim()}var zi=Symbol.for("pv"),Xi=0;function o(e,t,n,r,i,s){t||(t={});var a,c,l=t;if("ref"in l&&typeof e!="function")for(c in l={},t)c=="ref"?a=t[c]:l[c]=t[c];var d={type:e,props:l,key:n,ref:a,__k:null,
__:null,__b:0,__e:null,__c:null,constructor:zi,__v:--Xi,__i:-1,__u:0};return(i||s)&&(d.__source=i,d.__self=s),C.vnode&&C.vnode(d),d}var Ft="tutti.address";function Kn(){sessionStorage.setItem(Ft,location.hash),location.reload()}function jn(){let e=sessionStorage.getItem(Ft);sessionStorage.removeItem(
Ft),e&&!location.hash&&history.replaceState(null,"",e)}function Wn({onToken:e,message:t}){let[n,r]=O(""),i=n.trim().replace(/^Bearer\s+/i,""),s=/^[\x21-\x7e]+$/.
test(i);return o("main",{class:"login",children:[o("h1",{children:"Tutti"}),o("form",{onSubmit:a=>{a.preventDefault(),s&&e(i)},children:[o("label",{for:"token",
children:"Bearer token of this cluster"}),o("input",{id:"token",type:"password",autocomplete:"off",spellcheck:!1,autofocus:!0,value:n,onInput:a=>r(a.currentTarget.
value)}),o("button",{type:"submit",disabled:!s,children:"Log in"})]}),t&&o("p",{class:"error",role:"alert",children:t}),o("p",{children:["For example ",o("code",
{children:"kubectl create token NAME -n NAMESPACE"}),". The token stays in this tab and is forgotten when the tab is closed. With a kubeconfig, ",o("code",{children:"\
tutti console"})," needs none."]})]})}function Hn({why:e}){return o("main",{class:"login",children:[o("h1",{children:"Tutti"}),o("p",{class:"error",role:"alert",
children:Vn(e)}),o("p",{children:o("button",{type:"button",onClick:Kn,children:"Log in again"})}),e==="token refused"&&o("p",{children:["The proxy in front of t\
his page has logged you in and passed a token on. If it passes an old token on, log out there: oauth2-proxy does so at ",o("code",{children:"/oauth2/sign_out"}),
". If another login does not help, the API server does not trust the token's issuer or audience: the log of the API service has its reason."]})]})}function Qn({
message:e}){return o("main",{class:"login",children:[o("h1",{children:"Tutti"}),o("p",{class:"error",role:"alert",children:e}),o("p",{children:o("button",{type:"\
button",onClick:()=>location.reload(),children:"Try again"})})]})}function Yn({why:e}){return o("p",{class:"ended",role:"alert",children:[o("span",{children:[Vn(
e)," What is below is the last known state."]})," ",o("button",{type:"button",onClick:Kn,children:"Log in again"})]})}function Vn(e){return e==="token refused"?
"The cluster does not accept the token of your login.":"Your login has ended."}function I(e){let{namespace:t,name:n}=e.metadata;return t?`${t}/${n}`:n}function te(e){return`${e.metadata.namespace}/${e.status.title||e.metadata.name}`}function st({
status:e},t){let n=t.get(e.gang);if(!n||n.metadata.uid===e.gangId)return n;let{creationTimestamp:r}=n.metadata;return Date.parse(e.time)>=(r?Date.parse(r):0)?n:
void 0}function zn(e,t,n){let r=e.filter(s=>s.metadata.namespace===t),i=r.filter(s=>s.metadata.name===n);return i.length?i:r.filter(({metadata:s,status:a})=>{let c=a.
owner||s.name;return n===c||n===`${c} (${a.dialect})`||n===a.title})}var Dt=2e3,Ji=50,Zi=2e3,eo=1/3,to=15e3,no=3e4,ro=1e4,ne=class{constructor(t,n,r=!1,i){this.api=t;this.resource=n;this.watched=r;this.onRead=i}api;resource;watched;onRead;snapshot={
items:[],freshness:"loading",message:""};listeners=new Set;objects=new Map;ending;lingering;gathering;watchAgainAt=0;drawingMs=0;subscribe(t){return this.listeners.
add(t),clearTimeout(this.lingering),this.ending||(this.ending=new AbortController,this.run(this.ending.signal)),()=>{this.listeners.delete(t),!this.listeners.size&&
(this.lingering=setTimeout(()=>this.stop(),ro))}}stop(){this.ending?.abort(),this.ending=void 0}async run(t){let n=0;for(;!t.aborted;)try{await oo(t),await this.
follow(t),n=0}catch(r){if(t.aborted)return;n+=1;let i=r instanceof V?r.retryAfterMs:0,s=r instanceof V&&r.status===403;s&&this.objects.clear(),this.publish(s?"f\
orbidden":"failed",r instanceof Error?r.message:String(r)),await at(Math.max(i,Math.min(to,1e3*2**n)),t).catch(()=>{})}}async follow(t){let n=await this.api.list(
this.resource,t);this.onRead?.(n.items),this.objects.clear();for(let r of n.items)this.objects.set(I(r),r);(this.snapshot.freshness!=="live"||!io(this.snapshot.
items,n.items)||this.snapshot.message!==n.warning)&&this.publish("live",n.warning),this.watched&&Date.now()>=this.watchAgainAt?await this.watch(n.version,t):await at(
Dt,t)}async watch(t,n){try{let r=Date.now();for await(let i of this.api.watch(this.resource,t,n)){for(let{type:s,object:a}of i){if(s==="ERROR")throw new V(a.code??
500,a.message??"the watch failed");s==="DELETED"?this.objects.delete(I(a)):s!=="BOOKMARK"&&this.objects.set(I(a),a)}i.some(s=>s.type!=="BOOKMARK")&&this.publishSoon()}
Date.now()-r<Dt&&await at(Dt,n)}catch(r){if(n.aborted)throw r;r instanceof V&&r.status===410||(this.watchAgainAt=Date.now()+no)}}publishSoon(){this.gathering??=
setTimeout(()=>this.publish("live",this.snapshot.message),Math.min(Zi,Math.max(Ji,this.drawingMs/eo)))}publish(t,n){clearTimeout(this.gathering),this.gathering=
void 0,this.snapshot={items:[...this.objects.values()],freshness:t,message:n};let r=performance.now();for(let i of[...this.listeners])i();setTimeout(()=>{this.drawingMs=
performance.now()-r})}};function io(e,t){return e.length===t.length&&e.every((n,r)=>n===t[r])}async function oo(e){for(;globalThis.document?.hidden;)await at(500,
e)}function at(e,t){return new Promise((n,r)=>{let i=()=>{clearTimeout(s),r(new Error("ended"))},s=setTimeout(()=>{t.removeEventListener("abort",i),n()},e);t.addEventListener(
"abort",i,{once:!0})})}var Bt=[["d",86400],["h",3600],["m",60],["s",1]];function Ee(e){let t=Math.max(0,Math.floor(e/1e3));if(t<1)return"0s";let n=Bt.findIndex(([,l])=>t>=l),[r,i]=Bt[n],
s=Math.floor(t/i),a=Bt[n+1];if(!a||s>=10||a[0]==="s")return`${s}${r}`;let c=Math.floor((t-s*i)/a[1]);return c?`${s}${r}${c}${a[0]}`:`${s}${r}`}function oe(e,t){
let n=Date.parse(e??"");return Number.isNaN(n)?"":Ee(t-n)}function Xn(e,t,n){let[r,i]=[e,t].map(s=>Ee(Date.parse(s)-n));return r===i?r:`${r} to ${i}`}function ge(e){
let t=Date.parse(e??"");return Number.isNaN(t)?"":new Date(t).toISOString().replace("T"," ").replace(/\.\d+Z$/,"Z")}function Jn(e,t){let n=[],r=e.metadata.creationTimestamp;r&&n.push({time:r,title:"Seen by Tutti",details:""});for(let{status:c}of Zn(e,t)){let l=`${c.count} ${c.
count===1?"pod":"pods"}`,d=new Set((c.pods??[]).map(u=>u.node).filter(Boolean)).size;n.push({time:c.time,title:c.action==="Bind"?`Decided to bind ${l}`:`Decided\
 to evict ${l} for it`,details:[d?`on ${d} ${d===1?"node":"nodes"}`:"",c.domain?`in ${c.domain}`:"",c.attempt?`attempt ${c.attempt}`:"",c.message||c.reason||""].
filter(Boolean).join(", ")})}for(let c of e.status.conditions??[]){if(!c.lastTransitionTime)continue;let l=c.status==="False"?" (no longer)":"";n.push({time:c.lastTransitionTime,
title:`${c.type}${l}`,details:[c.reason,c.message].filter(Boolean).join(": ")})}let{earliest:i,latest:s,basis:a=""}=e.status.expectedStart??{};if(i&&s){let c=`a\
t the latest ${ge(s)}${a&&`: ${a}`}`;n.push({time:i,title:"Expected to start",details:c,expected:!0})}return n.sort((c,l)=>Date.parse(c.time)-Date.parse(l.time))}
function Zn(e,t){let n=new Map([[I(e),e]]);return t.filter(r=>st(r,n))}function er(e,t){let n=new Map;for(let{status:i}of Zn(e,t))if(i.action==="Bind")for(let s of i.
pods??[])n.set(s.name,{name:s.name,node:s.node??""});let r=new Set((e.status.placement??[]).map(i=>i.node));return[...n.values()].filter(i=>r.has(i.node)).sort(
(i,s)=>i.name<s.name?-1:1)}function xe(e){let[t,n]=e.replace(/^#\/?/,"").split("?",2),[r,...i]=(t??"").split("/").map(so);return{page:r||"overview",parts:i,query:new URLSearchParams(n??"")}}
function so(e){try{return decodeURIComponent(e)}catch{return e}}function z(e,...t){return`#/${[e,...t].map(encodeURIComponent).join("/")}`}function tr(e){if(!e||
!URL.canParse(e))return;let{protocol:t,href:n}=new URL(e);return t==="https:"||t==="http:"?n:void 0}function Ge(e){let t=e.indexOf("/");return z("gangs",e.slice(
0,t),e.slice(t+1))}var ao={n:1e-9,u:1e-6,m:.001,"":1,k:1e3,M:1e6,G:1e9,T:1e12,P:1e15,E:1e18,Ki:1024,Mi:1048576,Gi:1073741824,Ti:1099511627776,Pi:0x4000000000000,Ei:1152921504606847e3},
co=/^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/;function ct(e){let t=co.exec(e??""),n=t?ao[t[2]??""]:void 0,r=t&&n!==void 0?Number(t[1])*n:NaN;return Number.
isFinite(r)?r:void 0}function K(e){return ct(e)??0}function lo(e){return e.endsWith("memory")||e.endsWith("storage")||e.includes("hugepages")}function se(e,t){let n=t<
0?"\u2212":"",r=Math.abs(t);if(r>0&&r<.9995)return`${n}${nr(r*1e3)} m`;let[i,s,a]=lo(e)?[1024,["","Ki","Mi","Gi","Ti","Pi","Ei"],1024]:[1e3,["","k","M","G","T",
"P","E"],1e4],c=r,l=0;for(;c>=(l?i:a)*.9995&&l<s.length-1;)c/=i,l+=1;return`${n}${nr(c)} ${s[l]}`.trimEnd()}function nr(e){return e>=99.95?String(Math.round(e)):
String(Number(e.toFixed(1)))}function re(e){return e.slice(e.lastIndexOf("/")+1)}function he(e){let t=n=>n.includes("/")?0:n==="cpu"?1:n==="memory"?2:n==="pods"?
4:3;return[...e].sort((n,r)=>t(n)-t(r)||(n<r?-1:1))}function rr(e){let t=new Map(e.map(a=>[a.metadata.name,a])),n=new Map;for(let a of e){let c=a.status.parent??"",l=t.has(c)&&c!==a.metadata.name?c:"";n.set(l,[...n.
get(l)??[],a])}let r=[],i=new Set,s=(a,c)=>{if(!i.has(a)){i.add(a),r.push({queue:a,depth:c});for(let l of Ut(n.get(a.metadata.name)??[]))s(l,c+1)}};for(let a of Ut(
n.get("")??[]))s(a,0);for(let a of Ut(e))s(a,0);return r}function Ut(e){return[...e].sort((t,n)=>t.metadata.name<n.metadata.name?-1:1)}function lt(e){return(e.status.
resources??[]).map(t=>{let n=K(t.used),r=ct(t.deserved);return{resource:t.resource,used:n,wanted:K(t.wanted),promised:K(t.promised),reserved:K(t.reserved),guarantee:K(
t.guarantee),deserved:r,limit:ct(t.limit),borrowed:r===void 0?0:Math.max(0,n-r)}})}var uo=240,fo=1e3,ir=2e3,po=6e3,ut=class{instants=[];series=new Map;stepMs=ir;get since(){return this.instants[0]}take(t,n){n<(this.instants.at(-1)??0)&&this.clear(),
n-(this.instants.at(-2)??-1/0)<this.stepMs&&this.instants.pop();let r=this.instants.push(n)-1;for(let i of this.series.values())i.used[r]=i.deserved[r]=void 0;for(let i of t)
for(let s of lt(i)){let a=this.seriesOf(i.metadata.name,s.resource,r+1);a&&(a.used[r]=s.used,a.deserved[r]=s.deserved)}this.instants.length>uo&&this.thin()}lines(t,n){
let r=this.series.get(or(t,n)),i=[],s=-1/0;return this.instants.forEach((a,c)=>{let l=r?.used[c];l!==void 0&&((a-s>2*this.stepMs+po||r?.used[c-1]===void 0)&&i.push(
[]),i.at(-1).push({at:a,used:l,deserved:r?.deserved[c]}),s=a)}),i}seriesOf(t,n,r){let i=or(t,n),s=this.series.get(i);if(s||this.series.size>=fo)return s;let a={
used:Array(r).fill(void 0),deserved:Array(r).fill(void 0)};return this.series.set(i,a),a}thin(){let t=this.instants.length-1,n=r=>r.filter((i,s)=>s%2===0||s===t);
this.instants=n(this.instants),this.stepMs*=2;for(let[r,i]of this.series)i.used=n(i.used),i.deserved=n(i.deserved),i.used.every(s=>s===void 0)&&this.series.delete(
r)}clear(){this.instants=[],this.series=new Map,this.stepMs=ir}};function or(e,t){return JSON.stringify([e,t])}function ar(e,t,n,r,i){let s=Math.max(...e.flat().
map(u=>Math.max(u.used,u.deserved??0)),Number.MIN_VALUE),a=u=>sr(n>t?r*(u-t)/(n-t):r),c=u=>sr(i*(1-Math.max(0,u)/s)),l=(u,p)=>`${u.map((m,f)=>`${f?"L":"M"}${a(m.
at)} ${c(p(m))}`).join("")}${u.length===1?"h0":""}`,d=e.flatMap(u=>mo(u,p=>p.deserved===void 0));return{used:e.map(u=>l(u,p=>p.used)).join(""),area:e.map(u=>`${l(
u,p=>p.used)}V${i}H${a(u[0].at)}Z`).join(""),deserved:d.map(u=>l(u,p=>p.deserved)).join("")}}function mo(e,t){let n=[];return e.forEach((r,i)=>{t(r)||((i===0||t(
e[i-1]))&&n.push([]),n.at(-1).push(r))}),n}function sr(e){return Math.round(e*100)/100}function cr(e,t){let n=t.flat(),r=c=>{let[l,d]=[Math.min(...c),Math.max(...c)].
map(u=>se(e,u));return l===d?"unchanged":`${l} to ${d}`},i=n.at(-1);if(!i)return`${re(e)}: nothing is known`;let s=n.map(c=>c.deserved).filter(c=>c!==void 0),a=`${re(
e)}: ${se(e,i.used)} used (${r(n.map(c=>c.used))})`;return i.deserved===void 0?a:`${a}; ${se(e,i.deserved)} deserved (${r(s)})`}var dt=class{constructor(t){this.api=t;this.gangs=new ne(t,"gangs",!0),this.queues=new ne(t,"queues",!1,n=>this.queueHistory.take(n,Date.now())),this.nodes=new ne(
t,"nodes"),this.podShapes=new ne(t,"podshapes"),this.instances=new ne(t,"instances"),this.decisions=new ne(t,"decisions")}api;gangs;queues;queueHistory=new ut;nodes;podShapes;instances;decisions;stop(){
for(let t of[this.gangs,this.queues,this.nodes,this.podShapes,this.instances,this.decisions])t.stop()}},Gt=Cn(void 0);function j(){let e=Bn(Gt);if(!e)throw new Error(
"there is no session");return e}function $(e){let[,t]=Mt((n,r)=>n+1,0);return q(()=>e.subscribe(()=>t()),[e]),e.snapshot}function ae(e=1e3){let[t,n]=O(Date.now());
return q(()=>{let r=setInterval(()=>n(Date.now()),e);return()=>clearInterval(r)},[e]),t}function lr(){let[e,t]=O(()=>xe(location.hash));return q(()=>{let n=()=>t(
xe(location.hash));return addEventListener("hashchange",n),()=>removeEventListener("hashchange",n)},[]),e}function D(e,t){let{page:n,parts:r,query:i}=xe(location.
hash);t?i.set(e,t):i.delete(e);let s=i.toString();history.replaceState(null,"",`${z(n,...r)}${s?`?${s}`:""}`),dispatchEvent(new HashChangeEvent("hashchange"))}function Y({children:e,of:t}){let n=t.find(c=>c.freshness==="failed"),r=[...new Set(t.filter(c=>c.message&&c.freshness!=="failed").map(c=>c.message))],i=t.some(
c=>c.freshness==="loading"),[s,a]=n?["not current","bad"]:i?["loading","idle"]:["live","good"];return o(S,{children:[o("h1",{children:[e," ",o("span",{class:`ba\
dge ${a}`,role:"status",children:s})]}),n&&o("p",{class:"error",role:"alert",children:n.message}),r.map(c=>o("p",{class:"warning",children:c},c))]})}function ft({
of:e}){return e.freshness==="forbidden"?o(W,{children:e.message}):e.freshness==="failed"?o("p",{class:"error",children:e.message}):null}function ur({value:e,onSearch:t}){
let n=ue(null);return q(()=>{let r=i=>{let s=i.target;i.key!=="/"||i.ctrlKey||i.metaKey||/^(INPUT|TEXTAREA|SELECT)$/.test(s.tagName)||(i.preventDefault(),n.current?.
focus())};return addEventListener("keydown",r),()=>removeEventListener("keydown",r)},[]),o("input",{ref:n,type:"search",class:"search",value:e,"aria-label":"Sea\
rch gangs by name, owner, namespace, queue or reason",placeholder:"Search gangs ( / )",onInput:r=>t(r.currentTarget.value)})}var qt=["auto","light","dark"];function dr(){
let[e,t]=O(()=>localStorage.getItem("tutti.theme")??"auto");q(()=>{document.documentElement.dataset.theme=e,localStorage.setItem("tutti.theme",e)},[e]);let n=qt[(qt.
findIndex(r=>r===e)+1)%qt.length];return o("button",{type:"button",onClick:()=>t(n),title:`Change to ${n}`,children:["Theme: ",e]})}var go={Running:"good",Starting:"\
busy",Unknown:"bad",Inqueue:"wait",Pending:"idle",Completed:"done"};function Ce({phase:e}){return o("span",{class:`badge ${go[e]??"idle"}`,children:e})}function ce({
place:e,title:t=e}){return o("a",{href:Ge(e),children:t})}function _e({named:e}){let t=e.names??[],n=e.count-t.length;return o("ul",{class:"inline",children:[t.
map(r=>o("li",{children:o(ce,{place:r})},r)),n>0&&o("li",{children:t.length?`${n} more`:`${n} ${n===1?"gang":"gangs"}`})]})}function pt({label:e,whole:t,parts:n,
marks:r=[]}){let i=s=>`${t>0?Math.min(100,100*s/t):0}%`;return o("div",{class:"bar",role:"img","aria-label":e,title:e,children:[n.map(s=>o("span",{class:s.kind,
style:{width:i(s.value)}},s.kind)),r.map(s=>o("i",{class:s.kind,style:{left:i(s.value)}},s.kind))]})}function be({resource:e,value:t}){return o(S,{children:t===
void 0?"\u2013":se(e,t)})}function W({children:e}){return o("p",{class:"empty",children:e})}function X({label:e,children:t}){return o("div",{class:"scroll",role:"\
region","aria-label":e,tabIndex:0,children:t})}function Te({label:e,value:t,options:n,onChoice:r}){return o("label",{children:[e," ",o("select",{value:t,onChange:i=>r(
i.currentTarget.value),children:n.map(i=>o("option",{value:i,children:i},i))})]})}var mt=200;function fr({route:e}){let t=j(),[n="",r=""]=e.parts,i=$(t.gangs),s=x(()=>new ne(t.api,`namespaces/${encodeURIComponent(n)}/decisions`),[t,n]);q(()=>()=>s.
stop(),[s]);let a=$(s),c=zn(i.items,n,r),[l]=c;return o(S,{children:[o(Y,{of:[i,a],children:[o("small",{children:[n,"/"]}),c.length===1&&l?l.status.title||l.metadata.
name:r]}),!l&&i.freshness==="live"&&o(W,{children:"There is no such gang, or you may not see it. It may have ended."}),l&&c.length===1&&o(ho,{gang:l,decisions:a.
items}),c.length>1&&o(_e,{named:{count:c.length,names:c.map(I)}})]})}function ho({gang:e,decisions:t}){let n=ae(),{status:r,metadata:i}=e,{members:s}=r;return o(
S,{children:[r.pending&&o("p",{class:"why",children:r.pending.message}),o("dl",{class:"facts",children:[o("dt",{children:"Phase"}),o("dd",{children:o(Ce,{phase:r.
phase})}),o("dt",{children:"Members"}),o("dd",{children:[s.running," running, ",s.pending," pending",s.succeeded?`, ${s.succeeded} succeeded`:"",s.failed?`, ${s.
failed} failed`:""," of ",s.total,"; at least ",r.minMember]}),o("dt",{children:"Queue"}),o("dd",{children:o("a",{href:`${z("queues")}?${new URLSearchParams({queue:r.
queue})}`,children:r.queue})}),o(_o,{status:r,now:n}),o("dt",{children:"Age"}),o("dd",{children:oe(i.creationTimestamp,n)}),o(qe,{name:"Owner",value:r.owner}),o(
qe,{name:"API",value:r.dialect}),o(qe,{name:"Domain",value:r.domain}),o(qe,{name:"Node pool",value:r.nodePool}),o(qe,{name:"Attempt",value:r.attempt?String(r.attempt):
""}),o(bo,{id:r.traceId,address:tr(r.traceUrl)})]}),r.pending&&o(yo,{pending:r.pending,now:n}),o(vo,{gang:e,decisions:t}),o(wo,{gang:e,decisions:t})]})}function qe({
name:e,value:t}){return t?o(S,{children:[o("dt",{children:e}),o("dd",{children:t})]}):null}function _o({status:e,now:t}){let{position:n,expectedStart:r}=e;if(!r)
return null;let{earliest:i,latest:s,basis:a,asOf:c}=r;return o(S,{children:[n&&o(S,{children:[o("dt",{children:"Position in queue"}),o("dd",{children:n})]}),o("\
dt",{children:"Expected to start"}),o("dd",{children:[i&&s?`in ${Xn(i,s,t)} (${ge(i)} to ${ge(s)})${a?`: ${a}`:""}`:`no estimate: ${a}`,c&&o("small",{children:[
" as of ",oe(c,t)," ago"]})]})]})}function bo({id:e,address:t}){return e?o(S,{children:[o("dt",{children:"Trace"}),o("dd",{children:t?o("a",{href:t,rel:"norefer\
rer",children:[e," in Jaeger"]}):e})]}):null}function yo({pending:e,now:t}){return o("section",{children:[o("h2",{children:"What it waits for"}),o("dl",{class:"\
facts",children:[o("dt",{children:"Reason"}),o("dd",{children:e.reason}),e.since&&o(S,{children:[o("dt",{children:"Since"}),o("dd",{children:oe(e.since,t)})]}),
e.ahead&&o(S,{children:[o("dt",{children:"Ahead of it"}),o("dd",{children:o(_e,{named:e.ahead})})]}),e.holders&&o(S,{children:[o("dt",{children:"Hold what it la\
cks"}),o("dd",{children:o(_e,{named:e.holders})})]}),e.quota&&o(S,{children:[o("dt",{children:"Quota"}),o("dd",{children:o(pr,{all:e.quota})})]})]})]})}function pr({
all:e}){return o("ul",{class:"inline",children:e.map((t,n)=>o("li",{children:[t.nodes?`${t.nodes} \xD7 `:"",t.reason,t.missing?` (${t.missing} ${t.resource} mis\
sing)`:""]},n))})}function vo({gang:e,decisions:t}){let n=new Map((e.status.pending?.roles??[]).map(c=>[c.name,c])),r=new Map((e.status.roles??[]).map(c=>[c.name,
c])),i=[...new Set([...r.keys(),...n.keys()])].sort(),s=x(()=>er(e,t),[e,t]),a=e.status.placement??[];return o("section",{children:[o("h2",{children:"Members"}),
!i.length&&o(W,{children:"It has no pods yet."}),i.length>0&&o(X,{label:"Members by role",children:o("table",{children:[o("thead",{children:o("tr",{children:[o(
"th",{scope:"col",children:"Role"}),o("th",{scope:"col",class:"number",children:"Members"}),o("th",{scope:"col",class:"number",children:"Placed"}),o("th",{scope:"\
col",class:"number",children:"Running"}),o("th",{scope:"col",class:"number",children:"Would fit now"}),o("th",{scope:"col",children:"Nodes refuse because"})]})}),
o("tbody",{children:i.map(c=>{let[l,d]=[r.get(c),n.get(c)];return o("tr",{children:[o("th",{scope:"row",children:c||"(none)"}),o("td",{class:"number",children:l?.
members??"\u2013"}),o("td",{class:"number",children:l?.placed??"\u2013"}),o("td",{class:"number",children:l?.running??"\u2013"}),o("td",{class:"number",children:d?
`${d.fitting} of ${d.wanted}`:"\u2013"}),o("td",{children:d?.refusals&&o(pr,{all:d.refusals})})]},c)})})]})}),a.length>0&&o("h3",{children:["On ",a.length," ",a.
length===1?"node":"nodes"]}),s.length>0?o(X,{label:"Members and their nodes",children:o("table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"\
col",children:"Pod"}),o("th",{scope:"col",children:"Node"})]})}),o("tbody",{children:s.slice(0,mt).map(c=>o("tr",{children:[o("th",{scope:"row",children:c.name}),
o("td",{children:c.node})]},c.name))})]})}):o("ul",{class:"inline",children:a.slice(0,mt).map(c=>o("li",{children:[c.node," (",c.members,")"]},c.node))}),Math.max(
s.length,a.length)>mt&&o("p",{children:["The first ",mt," are shown."]})]})}function wo({gang:e,decisions:t}){let n=x(()=>Jn(e,t),[e,t]),r=Date.parse(n[0]?.time??
"");return o("section",{children:[o("h2",{children:"History"}),o("ol",{class:"history",children:n.map((i,s)=>o("li",{class:i.expected?"expected":void 0,children:[
o("time",{dateTime:i.time,children:ge(i.time)})," ",o("small",{children:["+",((Date.parse(i.time)-r)/1e3).toFixed(1)," s"]})," ",o("strong",{children:i.title}),
" ",i.details]},s))})]})}var Ke=["Running","Starting","Unknown","Inqueue","Pending","Completed"];function mr(e){let t=new Map;for(let{status:n}of e)for(let r of n.resources??[]){let i=t.
get(r.resource)??{resource:r.resource,total:0,requested:0,unusable:0};i.total+=K(r.allocatable),i.requested+=K(r.requested),(!n.ready||!n.schedulable)&&(i.unusable+=
Math.max(0,K(r.free))),t.set(r.resource,i)}return t}function gt(e){let t=new Map(Ke.map(n=>[n,0]));for(let{status:n}of e)t.set(n.phase,(t.get(n.phase)??0)+1);return t}
function gr(e){let t=new Map;for(let n of e){let r=n.status.pending?.reason;if(!r)continue;let i=n.status.members.pending,s=t.get(r)??{reason:r,gangs:0,members:0,
largest:n};s.gangs+=1,s.members+=i,i>s.largest.status.members.pending&&(s.largest=n),t.set(r,s)}return[...t.values()].sort((n,r)=>r.members-n.members||(n.reason<
r.reason?-1:1))}function hr(e,t){let n=new Map;for(let r of e)for(let i of r.status.pending?.holders?.names??[]){let s=n.get(i)??{gang:i,gangs:0,members:0};s.gangs+=
1,s.members+=r.status.members.pending,n.set(i,s)}return[...n.values()].sort((r,i)=>i.members-r.members||(r.gang<i.gang?-1:1)).slice(0,t)}function _r(e){let t=new Set(
e.map(r=>r.metadata.name)),n=new Map;for(let{status:r}of e)if(!t.has(r.parent??""))for(let i of r.resources??[]){let s=n.get(i.resource)??{resource:i.resource,promised:0,
reserved:0};s.promised+=K(i.promised),s.reserved+=K(i.reserved),n.set(i.resource,s)}return n}function br(e,t){let n=t.toLowerCase().split(/\s+/).filter(Boolean);
return n.length?e.filter(r=>{let{status:i}=r,a=[I(r),i.owner,i.title,i.queue,i.phase,i.dialect,i.pending?.reason].join(" ").toLowerCase();return n.every(c=>a.includes(
c))}):[...e]}var yr=100;function vr({route:e}){let{gangs:t}=j(),n=$(t),r=ae(),[i,s]=O(yr),a=e.query.get("search")??"",c=e.query.get("phase")??"",l=e.query.get("queue")??"",d=x(
()=>br(n.items,a).filter(m=>!l||m.status.queue===l),[n.items,a,l]),u=x(()=>gt(d),[d]),p=x(()=>d.filter(m=>!c||m.status.phase===c).sort(So),[d,c]);return o(S,{children:[
o(Y,{of:[n],children:"Gangs"}),o("div",{class:"filters",role:"group","aria-label":"Phase",children:[o("button",{type:"button","aria-pressed":!c,onClick:()=>D("p\
hase",""),children:["All ",d.length]}),Ke.map(m=>o("button",{type:"button","aria-pressed":c===m,onClick:()=>D("phase",c===m?"":m),children:[m," ",u.get(m)]},m)),
l&&o("button",{type:"button",onClick:()=>D("queue",""),children:["Queue: ",l," \u2715"]}),a&&o("button",{type:"button",onClick:()=>D("search",""),children:["Sea\
rch: ",a," \u2715"]})]}),n.freshness==="live"&&!p.length&&o(W,{children:"No gang that you may see is like this."}),p.length>0&&o(X,{label:"Gangs",children:o("ta\
ble",{class:"list",children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Gang"}),o("th",{scope:"col",children:"Phase"}),o("th",{scope:"c\
ol",class:"number",children:"Running"}),o("th",{scope:"col",class:"number",children:"Minimum"}),o("th",{scope:"col",children:"Queue"}),o("th",{scope:"col",children:"\
Age"}),o("th",{scope:"col",children:"Why it waits"})]})}),o("tbody",{children:p.slice(0,i).map(m=>o(To,{gang:m,now:r},I(m)))})]})}),p.length>i&&o("p",{children:o(
"button",{type:"button",onClick:()=>s(i+4*yr),children:["Show more: ",p.length-i," are left"]})})]})}function So(e,t){let n=r=>r.status.pending?0:1;return n(e)-
n(t)||(I(e)<I(t)?-1:1)}function To({gang:e,now:t}){let{status:n,metadata:r}=e;return o("tr",{children:[o("th",{scope:"row",children:o(ce,{place:I(e),title:te(e)})}),
o("td",{children:o(Ce,{phase:n.phase})}),o("td",{class:"number",children:[n.members.running,"/",n.members.total]}),o("td",{class:"number extra",children:n.minMember}),
o("td",{children:n.queue}),o("td",{children:oe(r.creationTimestamp,t)}),o("td",{class:"sentence",children:n.pending?.message})]})}function je(e){let t=2166136261;for(let r=0;r<e.length;r++)t=Math.imul(t^e.charCodeAt(r),16777619);t=Math.imul(t^t>>>15,2246822519);let n=(t^t>>>13)>>>0;return`\
hsl(${n%360} ${50+(n>>>9)%30}% ${40+(n>>>17)%16}%)`}function Tr(e){let t=new Set;for(let n of e)for(let{resource:r}of n.status.resources??[])t.add(r);return he(t)}function Ar(e){let t=new Set;for(let n of e)for(let r of Object.
keys(n.status.topology??{}))t.add(r);return[...t].sort()}function kr(e,t,n,r,i){let s=new Map;for(let c of t)for(let{node:l,members:d}of c.status.placement??[]){
let u=s.get(l);u?u.push({gang:c,members:d}):s.set(l,[{gang:c,members:d}])}let a=new Map;for(let c of[...e].sort((l,d)=>l.metadata.name<d.metadata.name?-1:1)){let l=i?
c.status.topology?.[i]??"":"",d=a.get(l)??{name:l,tiles:[]};d.tiles.push(Ao(c,s.get(c.metadata.name)??[],n,r)),a.set(l,d)}return[...a.values()].sort((c,l)=>c.name<
l.name?-1:1)}function Ao(e,t,n,r){let{status:i}=e,s=(i.resources??[]).find(p=>p.resource===n),a=K(s?.allocatable),c=a>0?Math.min(1,K(s?.requested)/a):0,l=t.reduce(
(p,m)=>p+m.members,0),d=l?Math.max(0,i.members-l):i.pods,u=new Map;for(let p of t){let m=r==="gang"?I(p.gang):p.gang.status.queue;u.set(m,(u.get(m)??0)+p.members)}
return d&&u.set("",d),{node:e,usable:i.ready&&i.schedulable,segments:[...u].map(([p,m])=>({name:p,part:c*m/(l+d)})),gangs:t.map(p=>({gang:I(p.gang),title:te(p.gang),
members:p.members}))}}var jt=16,wr=8,ko=44,Kt=5;function Er(e,t,n){let r=e.length>1;for(let i=ko;i>Kt;i--){let s=Sr(e,t,i,r);if(s&&s.height<=n)return s}return Sr(
e,Math.max(t,Kt),Kt,r)}function Sr(e,t,n,r){let i=Math.floor(t/n);if(i<1)return;let s=[],[a,c,l]=[0,0,0];for(let d of e){let u=Math.max(1,Math.min(i,r?Math.ceil(
Math.sqrt(d*2)):d)),p={columns:u,width:u*n,height:Math.ceil(d/u)*n+(r?jt:0)};a>0&&a+p.width>t&&(c+=l+wr,a=l=0),s.push({x:a,y:c,columns:u,width:p.width}),a+=p.width+
wr,l=Math.max(l,p.height)}return{side:n,boxes:s,height:c+l}}function xr({route:e}){let t=j(),n=$(t.nodes),r=$(t.gangs),i=x(()=>Tr(n.items),[n.items]),s=x(()=>Ar(n.items),[n.items]),a=e.query.get("resource")??i[0]??"",c=e.
query.get("by")==="queue"?"queue":"gang",l=e.query.get("group")??s[0]??"",d=x(()=>kr(n.items,r.items,a,c,l==="none"?"":l),[n.items,r.items,a,c,l]),[u,p,m]=Eo(),
f=x(()=>Er(d.map(w=>w.tiles.length),p,m),[d,p,m]),g=x(()=>d.flatMap(w=>w.tiles),[d]),[_,h]=O(""),y=g.find(w=>w.node.metadata.name===_),v=w=>{let N=g.findIndex(Z=>Z.
node.metadata.name===_),A=f.boxes[0]?.columns??1,P={ArrowRight:1,ArrowLeft:-1,ArrowDown:A,ArrowUp:-A}[w.key],Q=w.key==="Home"?0:w.key==="End"?g.length-1:P&&N+P;
Q===void 0||!g[Q]||(w.preventDefault(),h(g[Q].node.metadata.name),u.current?.querySelectorAll("button")[Q]?.focus())};return o(S,{children:[o(Y,{of:[n,r],children:"\
Cluster map"}),o("div",{class:"filters",children:[o(Te,{label:"Resource",value:a,options:i,onChoice:w=>D("resource",w)}),o(Te,{label:"Colour by",value:c,options:[
"gang","queue"],onChoice:w=>D("by",w)}),s.length>0&&o(Te,{label:"Group by",value:l,options:[...s,"none"],onChoice:w=>D("group",w)})]}),n.freshness==="live"&&!g.
length&&o(W,{children:"There are no nodes."}),o("div",{class:"map",ref:u,role:"group","aria-label":`${g.length} nodes; arrow keys move`,onKeyDown:v,children:o("\
div",{style:{height:`${f.height}px`,position:"relative"},children:d.map((w,N)=>{let A=f.boxes[N];return o("div",{class:"box",style:{left:`${A.x}px`,top:`${A.y}p\
x`,width:`${A.width}px`},children:[d.length>1&&o("div",{class:"title",style:{height:`${jt}px`},title:w.name,children:w.name||"(no label)"}),w.tiles.map(P=>o(xo,
{tile:P,side:f.side,resource:a,pressed:P===y,focusable:y?P===y:P===g[0],onChoose:h},P.node.metadata.name))]},w.name)})})}),o("div",{"aria-live":"polite",children:y?
o(No,{tile:y}):o("p",{class:"empty",children:"Choose a node to see what is on it."})})]})}function Eo(){let e=ue(null),[t,n]=O([0,0]);return q(()=>{let r=new ResizeObserver(
([i])=>{i&&n([Math.floor(i.contentRect.width),Math.floor(i.contentRect.height)])});return r.observe(e.current),()=>r.disconnect()},[]),[e,...t]}function xo({tile:e,
side:t,resource:n,pressed:r,focusable:i,onChoose:s}){let{name:a}=e.node.metadata,c=e.segments.reduce((d,u)=>d+u.part,0),l=`${a}: ${Math.round(c*100)} % of ${re(
n)} requested, ${e.gangs.length} gangs`+(e.usable?"":", takes no new pods");return o("button",{type:"button",class:e.usable?"tile":"tile unusable","aria-label":l,
"aria-pressed":r,title:l,tabIndex:i?0:-1,onClick:()=>s(a),style:{width:`${t-1}px`,height:`${t-1}px`,backgroundImage:Co(e)}})}function Co(e){let t=0,n=e.segments.
map(({name:r,part:i})=>{let s=t;return t+=i*100,`${r?je(r):"var(--wanted)"} ${s.toFixed(1)}% ${t.toFixed(1)}%`});return n.length?`linear-gradient(to top, ${n.join(
", ")}, transparent ${t.toFixed(1)}%)`:"none"}function No({tile:e}){let{metadata:t,status:n}=e.node;return o("section",{children:[o("h2",{children:t.name}),o("d\
l",{class:"facts",children:[(n.resources??[]).map(r=>o(S,{children:[o("dt",{title:r.resource,children:re(r.resource)}),o("dd",{children:[r.requested," of ",r.allocatable,
" requested, ",r.free," free"]})]})),!e.usable&&o(S,{children:[o("dt",{children:"State"}),o("dd",{children:n.ready?"cordoned":"not ready"})]}),n.taints&&o(S,{children:[
o("dt",{children:"Taints"}),o("dd",{children:n.taints.join(", ")})]}),Object.entries(n.topology??{}).map(([r,i])=>o(S,{children:[o("dt",{children:r}),o("dd",{children:i})]})),
o("dt",{children:"Gangs"}),o("dd",{children:[o("ul",{class:"inline",children:e.gangs.map(r=>o("li",{children:[o("span",{class:"swatch",style:{background:je(r.gang)}}),
" ",o(ce,{place:r.gang,title:r.title})," (",r.members,")"]},r.gang))}),!e.gangs.length&&"none that you may see"]})]})]})}var Wt=10;function Cr(){let e=j(),t=$(e.gangs),n=$(e.nodes),r=$(e.queues),i=$(e.podShapes),s=$(e.instances);return o(S,{children:[o(Y,{of:n.freshness==="forbidd\
en"?[t,r]:[t,n,r],children:"Overview"}),o("div",{class:"panels",children:[o("div",{children:[o(Oo,{gangs:t}),o(Io,{nodes:n,queues:r}),o($o,{shapes:i})]}),o("div",
{children:[o(Lo,{gangs:t}),o(Po,{gangs:t}),o(Ro,{instances:s})]})]})]})}function Io({nodes:e,queues:t}){let n=x(()=>mr(e.items),[e.items]),r=x(()=>_r(t.items),[
t.items]);return o("section",{children:[o("h2",{children:"Capacity"}),o(ft,{of:e}),he(n.keys()).map(i=>{let{total:s,requested:a,unusable:c}=n.get(i),{promised:l,
reserved:d}=r.get(i)??{promised:0,reserved:0},u=m=>se(i,m),p=[`${u(a)} of ${u(s)} requested`,c?`${u(c)} on nodes that take no pods`:"",l?`${u(l)} promised to ad\
mitted gangs`:"",d?`${u(d)} reserved for lost members`:""].filter(Boolean).join("; ");return o("div",{class:"measure",children:[o("div",{title:i,children:[re(i),
" ",o("strong",{children:[s?Math.round(100*a/s):0," %"]})]}),o(pt,{label:`${i}: ${p}`,whole:s,parts:[{kind:"used",value:a,title:"requested"},{kind:"kept",value:l+
d,title:"kept"},{kind:"unusable",value:c,title:"unusable"}]}),o("small",{children:p})]},i)})]})}function Oo({gangs:e}){let t=x(()=>gt(e.items),[e.items]);return o(
"section",{children:[o("h2",{children:"Gangs"}),o("ul",{class:"counts",children:Ke.map(n=>o("li",{children:o("a",{href:`${z("gangs")}?${new URLSearchParams({phase:n})}`,
children:[o("strong",{children:t.get(n)})," ",o(Ce,{phase:n})]})},n))})]})}function Lo({gangs:e}){let t=x(()=>gr(e.items),[e.items]);return o("section",{children:[
o("h2",{children:"Why gangs wait"}),e.freshness==="live"&&!t.length&&o(W,{children:"No gang waits."}),t.length>0&&o(X,{label:"Why gangs wait",children:o("table",
{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Reason"}),o("th",{scope:"col",class:"number",children:"Gangs"}),o("th",{scope:"co\
l",class:"number",children:"Members"}),o("th",{scope:"col",children:"Largest"})]})}),o("tbody",{children:t.slice(0,Wt).map(n=>o("tr",{children:[o("th",{scope:"r\
ow",children:o("a",{href:`${z("gangs")}?${new URLSearchParams({search:n.reason})}`,children:n.reason})}),o("td",{class:"number",children:n.gangs}),o("td",{class:"\
number",children:n.members}),o("td",{children:o(ce,{place:I(n.largest),title:te(n.largest)})})]},n.reason))})]})})]})}function Po({gangs:e}){let t=x(()=>hr(e.items,
Wt),[e.items]);return t.length?o("section",{children:[o("h2",{children:"Gangs that hold what others lack"}),o(X,{label:"Gangs that hold what others lack",children:o(
"table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Gang"}),o("th",{scope:"col",class:"number",children:"Waiting gangs"}),o("\
th",{scope:"col",class:"number",children:"Their members"})]})}),o("tbody",{children:t.map(n=>o("tr",{children:[o("th",{scope:"row",children:o(ce,{place:n.gang})}),
o("td",{class:"number",children:n.gangs}),o("td",{class:"number",children:n.members})]},n.gang))})]})})]}):null}function $o({shapes:e}){return o("section",{children:[
o("h2",{children:"Largest gangs that fit now"}),o(ft,{of:e}),e.freshness==="live"&&e.items.length===0&&o(W,{children:"There are no gangs, so there are no shapes\
 of pods to count."}),e.items.length>0&&o(X,{label:"Largest gangs that fit now",children:o("table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"\
col",children:"Pods that request"}),o("th",{scope:"col",class:"number",children:"Anywhere"}),o("th",{scope:"col",class:"number",children:"One domain"}),o("th",{
scope:"col",class:"number",children:"One node"}),o("th",{scope:"col",class:"number",children:"Unfragmented"})]})}),o("tbody",{children:e.items.slice(0,Wt).map(({
metadata:t,status:n})=>o("tr",{children:[o("th",{scope:"row",children:[he(Object.keys(n.requests)).map(r=>`${n.requests[r]} ${re(r)}`).join(", "),Object.entries(
n.nodeSelector??{}).map(([r,i])=>o("small",{children:[" ",r,"=",i]},r))]}),o("td",{class:"number",children:n.fits}),o("td",{class:"number",children:n.tiers?.length?
Math.max(...n.tiers.map(r=>r.pods)):"\u2013"}),o("td",{class:"number",children:n.fitsOnNode}),o("td",{class:"number",children:o(be,{resource:"pods",value:n.unfragmented})})]},
t.name))})]})})]})}function Ro({instances:e}){let t=ae();return o("section",{children:[o("h2",{children:"Services"}),o(ft,{of:e}),o("ul",{class:"services",children:e.
items.map(({metadata:n,status:r})=>o("li",{children:[o("span",{class:`badge ${r.ready?"good":"bad"}`,children:r.ready?"ready":"not ready"})," ",r.service,!r.active&&
" (standby)"," ",o("small",{children:[r.version,", ",oe(r.started,t)]}),(r.notReady??[]).map(i=>o("small",{children:[" ",i]},i))]},n.name))})]})}var Mo=50;function Or({route:e}){let{queues:t,gangs:n}=j(),r=$(t),i=$(n),s=x(()=>rr(r.items),[r.items]),a=x(()=>Fo(i.items),[i.items]),c=e.query.get("queue")??"";
return o(S,{children:[o(Y,{of:[r,i],children:"Queues"}),r.freshness==="live"&&!s.length&&o(W,{children:"There are no queues."}),s.length>0&&o(X,{label:"Queues",
children:o("table",{class:"tree",children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Queue"}),o("th",{scope:"col",class:"number",children:"\
Running"}),o("th",{scope:"col",class:"number",children:"Waiting"}),o("th",{scope:"col",children:"Resource"}),o("th",{scope:"col",class:"wide",children:"Share"}),
o("th",{scope:"col",class:"number",children:"Used"}),o("th",{scope:"col",class:"number",children:"Deserved"}),o("th",{scope:"col",class:"number",children:"Borro\
wed"}),o("th",{scope:"col",class:"number",children:"Limit"}),o("th",{scope:"col",class:"number",children:"Waited for"})]})}),s.map(({queue:l,depth:d})=>o(Do,{queue:l,
depth:d,open:c===l.metadata.name,waiting:a.get(l.metadata.name)??[]},l.metadata.name))]})}),o(Ko,{})]})}function Fo(e){let t=new Map;for(let n of e){if(!n.status.
pending)continue;let r=t.get(n.status.queue);r?r.push(n):t.set(n.status.queue,[n])}for(let n of t.values())n.sort((r,i)=>Ht(r)<Ht(i)?-1:1);return t}function Ht(e){
return e.status.pending?.since??e.metadata.creationTimestamp??""}function Do({queue:e,depth:t,open:n,waiting:r}){let{name:i}=e.metadata,{status:s}=e,a=lt(e),l=he(
a.map(p=>p.resource)).map(p=>a.find(m=>m.resource===p)),d=l.length?l:[void 0],u=[s.exists?"":"no such queue",s.state&&s.state!=="Open"?s.state:"",s.strict?"stri\
ct order":"",s.reclaimable?"":"not reclaimable",`weight ${s.weight}`].filter(Boolean).join(", ");return o("tbody",{children:[d.map((p,m)=>o("tr",{children:[m===
0&&o(S,{children:[o("th",{scope:"rowgroup",rowSpan:d.length,children:o("span",{class:"indent",style:{paddingLeft:`${Math.min(t,8)*1.25}rem`},children:[o("button",
{type:"button",class:"disclosure","aria-expanded":n,onClick:()=>D("queue",n?"":i),children:i}),o("small",{children:u})]})}),o("td",{class:"number",rowSpan:d.length,
children:s.gangs.running}),o("td",{class:"number",rowSpan:d.length,children:s.gangs.waiting+s.gangs.notAdmitted})]}),p?o(Bo,{share:p}):o("td",{colSpan:7})]},p?.
resource??"")),n&&o("tr",{children:o("td",{colSpan:10,class:"details",children:o(Uo,{queue:e,waiting:r})})})]})}function Bo({share:e}){let{resource:t,used:n,wanted:r,
promised:i,reserved:s,deserved:a,limit:c,borrowed:l}=e,d=n-l,u=m=>se(t,m),p=`${t}: uses ${u(n)}${a===void 0?"":`, deserves ${u(a)}`}${c===void 0?"":`, at most ${u(
c)}`}, waits for ${u(r)}`;return o(S,{children:[o("td",{title:t,children:re(t)}),o("td",{class:"wide",children:o(pt,{label:p,whole:Math.max(c??0,a??0,n+i+s+r),parts:[
{kind:"used",value:d,title:"used"},{kind:"borrowed",value:l,title:"borrowed"},{kind:"kept",value:i+s,title:"kept"},{kind:"wanted",value:r,title:"waited for"}],marks:a===
void 0?[]:[{kind:"deserved",value:a,title:"deserved"}]})}),o("td",{class:"number",children:o(be,{resource:t,value:n})}),o("td",{class:"number",children:o(be,{resource:t,
value:a})}),o("td",{class:"number",children:o(be,{resource:t,value:l||void 0})}),o("td",{class:"number",children:o(be,{resource:t,value:c})}),o("td",{class:"num\
ber",children:o(be,{resource:t,value:r||void 0})})]})}function Uo({queue:e,waiting:t}){let n=ae(),{name:r}=e.metadata;return o(S,{children:[e.status.message&&o(
"p",{children:e.status.message}),e.status.holders&&o("p",{children:["Held mostly by: ",o(_e,{named:e.status.holders})]}),o(Go,{queue:e,now:n}),!t.length&&o("p",
{children:"No gang that you may see waits in this queue itself."}),t.length>0&&o("table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"\
Waiting gang"}),o("th",{scope:"col",class:"number",children:"Members"}),o("th",{scope:"col",children:"Since"}),o("th",{scope:"col",children:"Why"})]})}),o("tbod\
y",{children:t.slice(0,Mo).map(i=>o("tr",{children:[o("td",{children:o(ce,{place:I(i),title:te(i)})}),o("td",{class:"number",children:i.status.members.pending}),
o("td",{children:oe(Ht(i),n)}),o("td",{class:"sentence",children:i.status.pending?.message})]},I(i)))})]}),o("p",{children:o("a",{href:`${z("gangs")}?${new URLSearchParams(
{queue:r})}`,children:["All gangs of ",r]})})]})}function Go({queue:e,now:t}){let{queueHistory:n}=j(),{name:r}=e.metadata,i=n.since,s=he((e.status.resources??[]).
map(a=>a.resource));return i===void 0||!s.length?null:o("section",{children:[o("h2",{children:["Since this page was opened ",o("small",{children:[ge(new Date(i).
toISOString()),", ",Ee(t-i)," ago"]})]}),o("ul",{class:"sparklines",children:s.map(a=>o(qo,{resource:a,lines:n.lines(r,a),from:i,to:t},a))}),o("p",{class:"empty",
children:"Used, and as a dashed line deserved, while this page or the overview was shown. Nothing is known of gaps."})]})}var[Nr,Ir]=[240,32];function qo({resource:e,
lines:t,from:n,to:r}){let i=ar(t,n,Math.max(r,t.at(-1)?.at(-1)?.at??r),Nr,Ir),s=cr(e,t);return o("li",{title:e,children:[o("svg",{role:"img","aria-label":s,viewBox:`\
0 0 ${Nr} ${Ir}`,preserveAspectRatio:"none",children:[o("path",{class:"area",d:i.area}),o("path",{class:"line",d:i.used}),o("path",{class:"line share",d:i.deserved})]}),
o("span",{"aria-hidden":"true",children:s})]})}function Ko(){return o("ul",{class:"legend","aria-label":"Colours of the shares",children:[o("li",{children:[o("s\
pan",{class:"used"})," used"]}),o("li",{children:[o("span",{class:"borrowed"})," used beyond its deserved share"]}),o("li",{children:[o("span",{class:"kept"}),"\
 kept for admitted gangs and lost members"]}),o("li",{children:[o("span",{class:"wanted"})," waited for"]}),o("li",{children:[o("span",{class:"mark"})," deserve\
d share"]})]})}var jo=new Set(["Starting","Running","Unknown"]),Wo=new Set(["Pending","Inqueue"]),Lr=["evicted","failed","deleted","succeeded"];function Pr(e,t){let n=new Map(
t.map(l=>[I(l),l])),r=Ho(e),i=new Set,s=[],a=new Map,c=new Map;for(let l of e){let{status:d}=l;if(d.action!=="Bind")continue;let u=st(l,n),p=Date.parse(d.time);
u&&!a.has(u)&&a.set(u,p);let m=new Map;for(let g of d.pods??[])i.has(g.uid)||m.set(g.node??"",[...m.get(g.node??"")??[],g.uid]),i.add(g.uid);let f=new Set(u&&jo.
has(u.status.phase)?(u.status.placement??[]).map(g=>g.node):[]);for(let[g,_]of m){let h=Qo(p,_.map(y=>r.get(y)),f.has(g));u&&c.set(u,Math.max(c.get(u)??0,h.end)),
s.push({gang:d.gang,title:u?te(u):Vo(l),node:g,start:p,pods:_.length,...h})}}for(let l of t)s.push(...Yo(l,a.get(l),c.get(l)??0));return s.sort((l,d)=>l.start-d.
start)}function Ho(e){let t=new Map,n=new Set;for(let{status:r}of e)for(let i of r.pods??[])r.action==="Evict"?(n.add(i.uid),t.has(i.uid)||t.set(i.uid,{at:Date.
parse(r.time),how:"evicted"})):i.ended&&t.set(i.uid,{at:Date.parse(i.ended),how:(i.end??"").toLowerCase()});for(let r of n){let i=t.get(r);i?.how==="deleted"&&t.
set(r,{...i,how:"evicted"})}return t}function Qo(e,t,n){let r=t.filter(i=>i!==void 0&&i.at>=e);if(r.length===t.length){let i=Lr.find(s=>r.some(a=>a.how===s))??"";
return{end:Math.max(...r.map(s=>s.at)),ended:i==="succeeded"?"done":"known",how:i}}return n?{end:1/0,ended:"now",how:""}:{end:e,ended:"unknown",how:""}}function*Yo(e,t,n){
let{metadata:r,status:i}=e;if(!r.creationTimestamp)return;let s=Date.parse(r.creationTimestamp),a={gang:I(e),title:te(e),node:"",pods:i.members.total,ended:"wai\
ted"};if(t!==void 0&&t>s&&(yield{...a,start:s,end:t,how:""}),Wo.has(i.phase)&&!i.placement?.length){yield{...a,start:Math.max(s,Number.isFinite(n)?n:0),end:1/0,
how:i.pending?.reason??""};let{earliest:c,latest:l,basis:d=""}=i.expectedStart??{};c&&l&&(yield{...a,ended:"expected",start:Date.parse(c),end:Date.parse(l),how:d})}}
function Vo({status:e}){let t=e.gang.indexOf("/");return`${e.gang.slice(0,t)}/${e.title||e.gang.slice(t+1)}`}function $r(e,t,n){let r=n.toLowerCase().split(/\s+/).
filter(Boolean),i=new Map;for(let a of e){if(t==="node"&&(a.ended==="waited"||a.ended==="expected"))continue;let c=`${a.title} ${a.gang} ${a.node}`.toLowerCase();
if(!r.every(p=>c.includes(p)))continue;let l=t==="gang"?a.title:a.node,d=i.get(l)??{name:l,intervals:[]},u=d.intervals.at(-1);if(t==="gang"&&u&&u.gang===a.gang&&
u.start===a.start&&u.ended===a.ended){let p=Lr.find(m=>m===u.how||m===a.how)??"";d.intervals[d.intervals.length-1]={...u,pods:u.pods+a.pods,end:Math.max(u.end,a.
end),node:"",how:p}}else d.intervals.push(a);i.set(l,d)}let s=a=>a.intervals.findLast(c=>c.ended!=="expected")?.start??0;return[...i.values()].sort((a,c)=>t==="\
node"?a.name<c.name?-1:1:s(c)-s(a)||(a.name<c.name?-1:1))}function Rr(e,t,n){let r=e.reduce((i,s)=>s.ended==="expected"?Math.max(i,s.end):i,n);return Math.min(r,
n+(n-t)/3)}function Mr(e,t,n){if(e.start>=n||e.end<t||n<=t)return;let r=Math.max(0,(e.start-t)/(n-t)),i=Math.min(1,(e.end-t)/(n-t));return{left:r*100,width:Math.
max(0,i-r)*100}}var zo=[1,5,15,60,300,900,3600,10800,21600,86400,604800];function Fr(e,t){let n=(zo.find(i=>(t-e)/(i*1e3)<=10)??2592e3)*1e3,r=[];for(let i=Math.
ceil(e/n)*n;i<t&&r.length<100;i+=n)r.push(i);return r}var Dr=100,Br="all",Ur={"15m":9e5,"1h":36e5,"6h":216e5,"24h":864e5},Gr=1e4;function qr({route:e}){let t=j(),n=$(t.decisions),r=$(t.gangs),i=ae(2e3),s=e.query.get(
"by")==="node"?"node":"gang",a=e.query.get("length")??Br,c=e.query.get("filter")??"",[l,d]=O(Dr),[u,p]=O(),m=x(()=>Pr(n.items,r.items),[n.items,r.items]),f=x(()=>$r(
m,s,c),[m,s,c]),g=i-(Ur[a]??Math.max(Gr,i-(m[0]?.start??i))),[_,h]=u??[g,Rr(m,g,i)],y=(A,P=.5)=>{let Q=Math.max(Gr,(h-_)*A),Z=_+(h-_)*P;p([Z-Q*P,Z+Q*(1-P)])},v=A=>p(
[_+(h-_)*A,h+(h-_)*A]),w=A=>{let P={"+":()=>y(.5),"-":()=>y(2),ArrowLeft:()=>v(-.25),ArrowRight:()=>v(.25),0:()=>p(void 0)}[A.key];!P||A.ctrlKey||A.metaKey||A.altKey||
(A.preventDefault(),P())},N=A=>{if(!A.ctrlKey)return;A.preventDefault();let P=A.currentTarget.getBoundingClientRect(),Q=Math.min(1,Math.max(0,(A.clientX-P.left-
P.width*.2)/(P.width*.8)));y(A.deltaY>0?1.25:.8,Q)};return o(S,{children:[o(Y,{of:[n,r],children:"Timeline"}),o("div",{class:"filters",children:[o(Te,{label:"Ro\
ws",value:s,options:["gang","node"],onChoice:A=>D("by",A)}),o(Te,{label:"Length",value:a,options:[...Object.keys(Ur),Br],onChoice:A=>{p(void 0),D("length",A)}}),
o("label",{children:["Filter ",o("input",{type:"search",value:c,onInput:A=>D("filter",A.currentTarget.value)})]}),o("span",{role:"group","aria-label":"Zoom",children:[
o("button",{type:"button",onClick:()=>y(.5),"aria-label":"Zoom in",children:"+"})," ",o("button",{type:"button",onClick:()=>y(2),"aria-label":"Zoom out",children:"\
\u2212"})," ",o("button",{type:"button",onClick:()=>v(-.25),"aria-label":"Earlier",children:"\u2190"})," ",o("button",{type:"button",onClick:()=>v(.25),"aria-la\
bel":"Later",children:"\u2192"})," ",o("button",{type:"button",onClick:()=>p(void 0),disabled:!u,children:"Now"})]})]}),n.freshness==="live"&&!f.length&&o(W,{children:"\
No decision that you may see is like this."}),f.length>0&&o("div",{class:"timeline",role:"region","aria-label":"Timeline; + and \u2212 zoom, arrow keys move, 0 reset\
s",tabIndex:0,onKeyDown:w,onWheel:N,children:[o(Xo,{from:_,to:h}),o("ul",{children:f.slice(0,l).map(A=>o(Jo,{row:A,by:s,from:_,to:h,now:i},A.name))})]}),f.length>
l&&o("p",{children:o("button",{type:"button",onClick:()=>d(l+4*Dr),children:["Show more: ",f.length-l," are left"]})}),o("p",{class:"empty",children:"The newest\
 10,000 decisions, and the gangs that exist. Hatched: a gang waited. Dashed: it is expected to start in between. A short bar with an open end: the gang is gone,\
 and the service that answers started after its end."})]})}function Xo({from:e,to:t}){let n=t-e>864e5;return o("div",{class:"axis","aria-hidden":"true",children:[
o("span",{children:"UTC"}),o("div",{class:"track",children:Fr(e,t).map(r=>o("span",{style:{left:`${100*(r-e)/(t-e)}%`},children:new Date(r).toISOString().slice(
n?5:11,t-e<12e4?19:16).replace("T"," ")},r))})]})}function Jo({row:e,by:t,from:n,to:r,now:i}){return o("li",{children:[t==="gang"?o("a",{href:Ge(e.intervals.at(
-1).gang),children:e.name}):o("span",{children:e.name}),o("div",{class:"track",children:e.intervals.map(s=>o(Zo,{one:s,from:n,to:r,now:i},`${s.gang} ${s.start} ${s.
ended}`))})]})}function Zo({one:e,from:t,to:n,now:r}){let i=e.ended==="expected"?e.end:Math.min(e.end,Math.max(r,e.start)),s=Mr({...e,end:i},t,n);if(!s)return null;
let a=Ee(i-e.start),c=e.how?`, then ${e.how}`:"",l={expected:`expected to start before ${new Date(i).toISOString().slice(0,19)}Z${e.how?`: ${e.how}`:""}`,waited:`\
waited for ${a}${e.how?`: ${e.how}`:""}`,now:`for ${a}`,done:`for ${a}${c}`,known:`for ${a}${c}`,unknown:"end unknown"},d=`${e.title}${e.node?` on ${e.node}`:""}\
: ${e.pods} pods from ${new Date(e.start).toISOString().slice(0,19)}Z, ${l[e.ended]}`;return o("a",{class:`interval ${e.ended}`,href:Ge(e.gang),title:d,"aria-la\
bel":d,tabIndex:-1,style:{left:`${s.left}%`,width:e.ended==="unknown"?"1.5rem":`${s.width}%`,color:je(e.gang)}})}var k=Symbol("NOT_RESOLVED");function G(e,t){return{tagName:e,nodeKind:"scalar",implicit:t.implicit??!1,matchByTagPrefix:t.matchByTagPrefix??!1,implicitFirstChars:t.
implicitFirstChars??null,resolve:t.resolve,identify:t.identify,represent:t.represent??(n=>String(n)),representTagName:t.representTagName??(()=>e)}}function sn(e,t){
let n=t.finalize===void 0;return{tagName:e,nodeKind:"sequence",implicit:!1,matchByTagPrefix:t.matchByTagPrefix??!1,create:t.create,addItem:t.addItem,finalize:t.
finalize??(r=>r),carrierIsResult:n,identify:t.identify,represent:t.represent??(r=>r),representTagName:t.representTagName??(()=>e)}}function yt(e,t){let n=t.finalize===
void 0;return{tagName:e,nodeKind:"mapping",implicit:!1,matchByTagPrefix:t.matchByTagPrefix??!1,create:t.create,addPair:t.addPair,has:t.has,keys:t.keys,get:t.get,
finalize:t.finalize??(r=>r),carrierIsResult:n,identify:t.identify,represent:t.represent??(r=>r),representTagName:t.representTagName??(()=>e)}}var es=G("tag:yaml\
.org,2002:str",{resolve:e=>e,identify:e=>typeof e=="string"}),ts=["","~","null","Null","NULL"],ns=G("tag:yaml.org,2002:null",{implicit:!0,implicitFirstChars:["",
"~","n","N"],resolve:e=>ts.indexOf(e)!==-1?null:k,identify:e=>e===null,represent:()=>"null"}),rs=G("tag:yaml.org,2002:null",{implicit:!0,implicitFirstChars:["n"],
resolve:(e,t)=>e==="null"||t&&e===""?null:k,identify:e=>e===null,represent:()=>"null"}),is=["","~","null","Null","NULL"],os=G("tag:yaml.org,2002:null",{implicit:!0,
implicitFirstChars:["","~","n","N"],resolve:e=>is.indexOf(e)!==-1?null:k,identify:e=>e===null,represent:()=>"null"}),ss=["true","True","TRUE"],as=["false","Fals\
e","FALSE"],cs=G("tag:yaml.org,2002:bool",{implicit:!0,implicitFirstChars:["t","T","f","F"],resolve:e=>ss.indexOf(e)!==-1?!0:as.indexOf(e)!==-1?!1:k,identify:e=>Object.
prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"false"}),ls=["true"],us=["false"],ds=G("tag:yaml.org,2002:bool",{implicit:!0,implicitFirstChars:[
"t","f"],resolve:e=>ls.indexOf(e)!==-1?!0:us.indexOf(e)!==-1?!1:k,identify:e=>Object.prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"fals\
e"}),fs=["true","True","TRUE","y","Y","yes","Yes","YES","on","On","ON"],ps=["false","False","FALSE","n","N","no","No","NO","off","Off","OFF"],ms=G("tag:yaml.org\
,2002:bool",{implicit:!0,implicitFirstChars:["y","Y","n","N","t","T","f","F","o","O"],resolve:e=>fs.indexOf(e)!==-1?!0:ps.indexOf(e)!==-1?!1:k,identify:e=>Object.
prototype.toString.call(e)==="[object Boolean]",represent:e=>e?"true":"false"}),gs=new RegExp("^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?[0-9]+)$"),hs=new RegExp("^(?:[-\
+]?0b[0-1]+|[-+]?0o[0-7]+|[-+]?0x[0-9a-fA-F]+|[-+]?[0-9]+)$");function _s(e){let t=e,n=1;return(t[0]==="-"||t[0]==="+")&&(t[0]==="-"&&(n=-1),t=t.slice(1)),t.startsWith(
"0b")?n*parseInt(t.slice(2),2):t.startsWith("0o")?n*parseInt(t.slice(2),8):t.startsWith("0x")?n*parseInt(t.slice(2),16):n*parseInt(t,10)}function bs(e,t){if(t){
if(!hs.test(e))return k}else if(!gs.test(e))return k;let n=_s(e);return Number.isFinite(n)?n:k}var ri=G("tag:yaml.org,2002:int",{implicit:!0,implicitFirstChars:[
"-","+",..."0123456789"],resolve:bs,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf("e")<0,represent:e=>e.toString(10)}),ys=new RegExp(
"^-?(?:0|[1-9][0-9]*)$"),vs=new RegExp("^(?:[-+]?0b[0-1]+|[-+]?0o[0-7]+|[-+]?0x[0-9a-fA-F]+|[-+]?[0-9]+)$");function ws(e){let t=e,n=1;return(t[0]==="-"||t[0]===
"+")&&(t[0]==="-"&&(n=-1),t=t.slice(1)),t.startsWith("0b")?n*parseInt(t.slice(2),2):t.startsWith("0o")?n*parseInt(t.slice(2),8):t.startsWith("0x")?n*parseInt(t.
slice(2),16):n*parseInt(t,10)}function Ss(e,t){if(t){if(!vs.test(e))return k}else if(!ys.test(e))return k;let n=ws(e);return Number.isFinite(n)?n:k}var Ts=G("ta\
g:yaml.org,2002:int",{implicit:!0,implicitFirstChars:["-",..."0123456789"],resolve:Ss,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf(
"e")<0,represent:e=>e.toString(10)}),As=new RegExp("^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+|[-+]?(?:0|[1-9][0-9\
_]*))$");function ks(e){let t=e.replace(/_/g,""),n=1;if((t[0]==="-"||t[0]==="+")&&(t[0]==="-"&&(n=-1),t=t.slice(1)),t.startsWith("0b"))return n*parseInt(t.slice(
2),2);if(t.startsWith("0x"))return n*parseInt(t.slice(2),16);if(t.includes(":")){let r=0;for(let i of t.split(":"))r=r*60+Number(i);return n*r}return t!=="0"&&t[0]===
"0"?n*parseInt(t,8):n*parseInt(t,10)}function Es(e){if(!As.test(e))return k;let t=ks(e);return Number.isFinite(t)?t:k}var Zt=G("tag:yaml.org,2002:int",{implicit:!0,
implicitFirstChars:["-","+",..."0123456789"],resolve:Es,identify:e=>Number.isInteger(e)&&!Object.is(e,-0)&&e.toString(10).indexOf("e")<0,represent:e=>e.toString(
10)}),xs=new RegExp("^(?:[-+]?[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$"),Cs=new RegExp(
"^(?:[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function Ns(e){if(!xs.test(e))return k;let t=e.toLowerCase(),n=t[0]==="-"?-1:1;if("+-".includes(t[0])&&(t=t.
slice(1)),t===".inf")return n===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(t===".nan")return NaN;let r=n*parseFloat(t);return Number.isFinite(r)||Cs.
test(e)?r:k}function Is(e){if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))
return"-0.0";let t=e.toString(10);return/^[-+]?[0-9]+e/.test(t)?t.replace("e",".e"):t}var ii=G("tag:yaml.org,2002:float",{implicit:!0,implicitFirstChars:["-","+",
".",..."0123456789"],resolve:Ns,identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(10).indexOf("e")>=0),represent:Is}),Os=new RegExp(
"^-?(?:0|[1-9][0-9]*)(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?$"),Ls=new RegExp("^(?:[-+]?[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|[-+]?\\.[0-9]+(?:[eE][-+]?[0-9]+)?|[-+\
]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function Ps(e,t){if(t){if(!Ls.test(e))return k;let r=e.toLowerCase(),i=r[0]==="-"?-1:1;if("+-".includes(r[0])&&(r=r.
slice(1)),r===".inf")return i===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(r===".nan")return NaN;let s=i*parseFloat(r);return Number.isFinite(s)?s:k}
if(!Os.test(e))return k;let n=Number(e);return Number.isFinite(n)?n:k}function $s(e){if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===
Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))return"-0.0";let t=e.toString(10);return/^[-+]?[0-9]+e/.test(t)?t.replace("e",".e"):t}var Rs=G("tag:ya\
ml.org,2002:float",{implicit:!0,implicitFirstChars:["-",..."0123456789"],resolve:Ps,identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(
10).indexOf("e")>=0),represent:$s}),Ms=new RegExp("^(?:[-+]?(?:(?:[0-9][0-9_]*)?\\.[0-9_]*)(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\\.[0-9_]*|[-+]?\\\
.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$"),Fs=new RegExp("^(?:[-+]?\\.(?:inf|Inf|INF)|\\.(?:nan|NaN|NAN))$");function Ds(e){if(!Ms.test(e))return k;let t=e.toLowerCase().
replace(/_/g,""),n=t[0]==="-"?-1:1;if("+-".includes(t[0])&&(t=t.slice(1)),t===".inf")return n===1?Number.POSITIVE_INFINITY:Number.NEGATIVE_INFINITY;if(t===".nan")
return NaN;let r=0;if(t.includes(":")){for(let i of t.split(":"))r=r*60+Number(i);r*=n}else r=n*parseFloat(t);return Number.isFinite(r)||Fs.test(e)?r:k}function Bs(e){
if(isNaN(e))return".nan";if(e===Number.POSITIVE_INFINITY)return".inf";if(e===Number.NEGATIVE_INFINITY)return"-.inf";if(Object.is(e,-0))return"-0.0";let t=e.toString(
10);return/^[-+]?[0-9]+e/.test(t)?t.replace("e",".e"):t}var en=G("tag:yaml.org,2002:float",{implicit:!0,implicitFirstChars:["-","+",".",..."0123456789"],resolve:Ds,
identify:e=>typeof e=="number"&&(!Number.isInteger(e)||Object.is(e,-0)||e.toString(10).indexOf("e")>=0),represent:Bs}),Us=G("tag:yaml.org,2002:merge",{implicit:!0,
implicitFirstChars:["<"],resolve:(e,t)=>e==="<<"||t&&e===""?"<<":k,identify:()=>!1}),Gs=/^[A-Za-z0-9+/]*={0,2}$/;function qs(e){let t=e.replace(/\s/g,"");if(t.length%
4!==0||!Gs.test(t))return k;let n=atob(t),r=new Uint8Array(n.length);for(let i=0;i<n.length;i++)r[i]=n.charCodeAt(i);return r}function Ks(e){let t="";for(let n=0;n<
e.length;n++)t+=String.fromCharCode(e[n]);return btoa(t)}var js=G("tag:yaml.org,2002:binary",{resolve:qs,identify:e=>Object.prototype.toString.call(e)==="[objec\
t Uint8Array]",represent:Ks}),Ws=new RegExp("^([0-9][0-9][0-9][0-9])-([0-9][0-9])-([0-9][0-9])$"),Hs=new RegExp("^([0-9][0-9][0-9][0-9])-([0-9][0-9]?)-([0-9][0-\
9]?)(?:[Tt]|[ \\t]+)([0-9][0-9]?):([0-9][0-9]):([0-9][0-9])(?:\\.([0-9]*))?(?:[ \\t]*(Z|([-+])([0-9][0-9]?)(?::([0-9][0-9]))?))?$");function Kr(e,t,n,r=0,i=0,s=0,a=0){
let c=new Date(Date.UTC(e,t,n,r,i,s,a));return c.setUTCFullYear(e,t,n),c}function Qs(e){let t=Ws.exec(e);if(t===null&&(t=Hs.exec(e)),t===null)return k;let n=+t[1],
r=+t[2]-1,i=+t[3];if(!t[4]){let u=Kr(n,r,i);return u.getUTCFullYear()!==n||u.getUTCMonth()!==r||u.getUTCDate()!==i?k:u}let s=+t[4],a=+t[5],c=+t[6],l=0;if(s>23||
a>59||c>59)return k;if(t[7]){let u=t[7].slice(0,3);for(;u.length<3;)u+="0";l=+u}let d=Kr(n,r,i,s,a,c,l);if(d.getUTCFullYear()!==n||d.getUTCMonth()!==r||d.getUTCDate()!==
i)return k;if(t[9]){let u=+t[10],p=+(t[11]||0);if(u>23||p>59)return k;let m=(u*60+p)*6e4;d.setTime(d.getTime()-(t[9]==="-"?-m:m))}return d}var Ys=G("tag:yaml.or\
g,2002:timestamp",{implicit:!0,implicitFirstChars:[..."0123456789"],resolve:Qs,identify:e=>e instanceof Date,represent:e=>e.toISOString()}),Vs=sn("tag:yaml.org,\
2002:seq",{create:()=>[],addItem:(e,t)=>{e.push(t)},identify:Array.isArray});function vt(e){if(e===null||typeof e!="object"||Array.isArray(e))return!1;let t=Object.
getPrototypeOf(e);return t===null||t===Object.prototype}function jr(e,t){let n={};for(let r of t)e[r]!==void 0&&(n[r]=e[r]);return n}var zs=sn("tag:yaml.org,200\
2:omap",{create:()=>({list:[],seen:new Set}),addItem:(e,t)=>{let n;if(t instanceof Map){if(t.size!==1)return"cannot resolve an ordered map item";n=t.keys().next().
value}else if(vt(t)){let r=Object.keys(t);if(r.length!==1)return"cannot resolve an ordered map item";n=r[0]}else return"cannot resolve an ordered map item";return e.
seen.has(n)?"duplicate key in ordered map":(e.seen.add(n),e.list.push(t),"")},finalize:e=>e.list,identify:()=>!1}),Xs=sn("tag:yaml.org,2002:pairs",{create:()=>[],
addItem:(e,t)=>{if(t instanceof Map)return t.size!==1?"cannot resolve a pairs item":(e.push(t.entries().next().value),"");if(Object.prototype.toString.call(t)!==
"[object Object]")return"cannot resolve a pairs item";let n=t,r=Object.keys(n);return r.length!==1?"cannot resolve a pairs item":(e.push([r[0],n[r[0]]]),"")},identify:()=>!1}),
Js=yt("tag:yaml.org,2002:map",{create:()=>({}),identify:vt,represent:e=>{let t=new Map;for(let n of Object.keys(e))t.set(n,e[n]);return t},addPair:(e,t,n)=>{if(t!==
null&&typeof t=="object")return"object-based map does not support complex keys";let r=String(t);return r==="__proto__"?Object.defineProperty(e,r,{value:n,enumerable:!0,
configurable:!0,writable:!0}):e[r]=n,""},has:(e,t)=>t!==null&&typeof t=="object"?!1:Object.prototype.hasOwnProperty.call(e,String(t)),keys:e=>Object.keys(e),get:(e,t)=>{
let n=String(t);return Object.prototype.hasOwnProperty.call(e,n)?e[n]:null}}),Zs=yt("tag:yaml.org,2002:set",{create:()=>new Set,identify:e=>e instanceof Set,represent:e=>{
let t=new Map;for(let n of e)t.set(n,null);return t},addPair:(e,t,n)=>n!==null?"cannot resolve a set item":(e.add(t),""),has:(e,t)=>e.has(t),keys:e=>e.keys(),get:()=>null});
function ea(){return{scalar:Object.create(null),sequence:Object.create(null),mapping:Object.create(null)}}function ta(){return{scalar:[],sequence:[],mapping:[]}}
function na(e){let t=[];for(let n of e){let r=t.length;for(let i=0;i<t.length;i++){let s=t[i];if(s.nodeKind===n.nodeKind&&s.tagName===n.tagName&&s.matchByTagPrefix===
n.matchByTagPrefix){r=i;break}}t[r]=n}return t}var wt=class oi{tags;implicitScalarTags;implicitScalarByFirstChar;implicitScalarAnyFirstChar;defaultScalarTag;defaultSequenceTag;defaultMappingTag;exact;prefix;constructor(t){
let n=na(t),r=[],i=ea(),s=ta();for(let u of n){if(u.nodeKind==="scalar"&&u.implicit){if(u.matchByTagPrefix)throw new Error("Implicit scalar tags cannot match by\
 tag prefix");r.push(u)}switch(u.nodeKind){case"scalar":u.matchByTagPrefix?s.scalar.push(u):i.scalar[u.tagName]=u;break;case"sequence":u.matchByTagPrefix?s.sequence.
push(u):i.sequence[u.tagName]=u;break;case"mapping":u.matchByTagPrefix?s.mapping.push(u):i.mapping[u.tagName]=u}}let a=r.filter(u=>u.implicitFirstChars===null),
c=new Set;for(let u of r)if(u.implicitFirstChars!==null)for(let p of u.implicitFirstChars)c.add(p);let l=new Map;for(let u of c)l.set(u,r.filter(p=>p.implicitFirstChars===
null||p.implicitFirstChars.indexOf(u)!==-1));let d=i.scalar["tag:yaml.org,2002:str"];if(!d)throw new Error("schema does not define the default scalar tag (tag:y\
aml.org,2002:str)");this.tags=n,this.implicitScalarTags=r,this.implicitScalarByFirstChar=l,this.implicitScalarAnyFirstChar=a,this.defaultScalarTag=d,this.defaultSequenceTag=
i.sequence["tag:yaml.org,2002:seq"],this.defaultMappingTag=i.mapping["tag:yaml.org,2002:map"],this.exact=i,this.prefix=s}lookupScalarTag(t){let n=this.exact.scalar[t];
if(n)return n;for(let r of this.prefix.scalar)if(t.startsWith(r.tagName))return r}lookupSequenceTag(t){let n=this.exact.sequence[t];if(n)return n;for(let r of this.
prefix.sequence)if(t.startsWith(r.tagName))return r}lookupMappingTag(t){let n=this.exact.mapping[t];if(n)return n;for(let r of this.prefix.mapping)if(t.startsWith(
r.tagName))return r}resolveImplicitScalarTag(t){let n=this.implicitScalarByFirstChar.get(t.charAt(0))??this.implicitScalarAnyFirstChar;for(let i of n){let s=i.resolve(
t,!1,i.tagName);if(s!==k)return{value:s,tag:i}}let r=this.defaultScalarTag;return{value:r.resolve(t,!1,r.tagName),tag:r}}withTags(...t){let n=[];for(let r of t)
n=n.concat(r);return new oi([...this.tags,...n])}},an=new wt([es,Vs,Js]),_u=new wt([...an.tags,rs,ds,Ts,Rs]),ra=new wt([...an.tags,ns,cs,ri,ii]),ia=new wt([...an.
tags,os,ms,Zt,en,Ys,Us,js,zs,Xs,Zs]),oa=ia.withTags({...Zt,resolve:(e,t,n)=>{let r=Zt.resolve(e,t,n);return r===k?ri.resolve(e,t,n):r}},{...en,resolve:(e,t,n)=>{
let r=en.resolve(e,t,n);return r===k?ii.resolve(e,t,n):r}}),bu=yt("tag:yaml.org,2002:map",{create:()=>new Map,addPair:(e,t,n)=>(e.set(t,n),""),has:(e,t)=>e.has(
t),keys:e=>e.keys(),get:(e,t)=>e.get(t),identify:e=>e instanceof Map||vt(e),represent:e=>{if(e instanceof Map)return e;let t=new Map,n=e;for(let r of Object.keys(
n))t.set(r,n[r]);return t}});function Wr(e){if(Array.isArray(e)){let t=Array.prototype.slice.call(e);for(let n=0;n<t.length;n++){if(Array.isArray(t[n]))return null;
typeof t[n]=="object"&&Object.prototype.toString.call(t[n])==="[object Object]"&&(t[n]="[object Object]")}return String(t)}return typeof e=="object"&&Object.prototype.
toString.call(e)==="[object Object]"?"[object Object]":String(e)}var yu=yt("tag:yaml.org,2002:map",{create:()=>({}),identify:vt,represent:e=>{let t=new Map;for(let n of Object.
keys(e))t.set(n,e[n]);return t},addPair:(e,t,n)=>{let r=Wr(t);return r===null?"nested arrays are not supported inside keys":(r==="__proto__"?Object.defineProperty(
e,r,{value:n,enumerable:!0,configurable:!0,writable:!0}):e[r]=n,"")},has:(e,t)=>{let n=Wr(t);return n!==null&&Object.prototype.hasOwnProperty.call(e,n)},keys:e=>Object.
keys(e),get:(e,t)=>{let n=String(t);return Object.prototype.hasOwnProperty.call(e,n)?e[n]:null}}),sa={maxLength:79,indent:1,linesBefore:3,linesAfter:2};function Qt(e,t,n,r,i){
let s="",a="",c=Math.floor(i/2)-1;return r-t>c&&(s=" ... ",t=r-c+s.length),n-r>c&&(a=" ...",n=r+c-a.length),{str:s+e.slice(t,n).replace(/\t/g,"\u2192")+a,pos:r-
t+s.length}}function Yt(e,t){return" ".repeat(Math.max(t-e.length,0))+e}function aa(e,t){if(!e.buffer)return null;let n={...sa,...t},r=/\r?\n|\r|\0/g,i=[0],s=[],
a,c=-1;for(;a=r.exec(e.buffer);)s.push(a.index),i.push(a.index+a[0].length),e.position<=a.index&&c<0&&(c=i.length-2);c<0&&(c=i.length-1);let l="",d=Math.min(e.line+
n.linesAfter,s.length).toString().length,u=n.maxLength-(n.indent+d+3);for(let m=1;m<=n.linesBefore&&!(c-m<0);m++){let f=Qt(e.buffer,i[c-m],s[c-m],e.position-(i[c]-
i[c-m]),u);l=`${" ".repeat(n.indent)}${Yt((e.line-m+1).toString(),d)} | ${f.str}
${l}`}let p=Qt(e.buffer,i[c],s[c],e.position,u);l+=`${" ".repeat(n.indent)}${Yt((e.line+1).toString(),d)} | ${p.str}
`,l+=`${"-".repeat(n.indent+d+3+p.pos)}^
`;for(let m=1;m<=n.linesAfter&&!(c+m>=s.length);m++){let f=Qt(e.buffer,i[c+m],s[c+m],e.position-(i[c]-i[c+m]),u);l+=`${" ".repeat(n.indent)}${Yt((e.line+m+1).toString(),
d)} | ${f.str}
`}return l.replace(/\n$/,"")}function Hr(e,t){let n="";return e.mark?(e.mark.name&&(n+=`in "${e.mark.name}" `),n+=`(${e.mark.line+1}:${e.mark.column+1})`,!t&&e.
mark.snippet&&(n+=`

${e.mark.snippet}`),`${e.reason} ${n}`):e.reason}var He=class si extends Error{reason;mark;constructor(t,n){super(),this.name="YAMLException",this.reason=t,this.
mark=n,this.message=Hr(this,!1),Error.captureStackTrace&&Error.captureStackTrace(this,this.constructor)}toString(t){return`${this.name}: ${Hr(this,t)}`}static throwAt(t,n,r,i=""){
let s=0,a=0;for(let l=0;l<n;l++){let d=t.charCodeAt(l);d===10?(s++,a=l+1):d===13&&(s++,t.charCodeAt(l+1)===10&&l++,a=l+1)}let c={name:i,buffer:t,position:n,line:s,
column:n-a};throw c.snippet=aa(c),new si(r,c)}},L={DOCUMENT:1,SEQUENCE:2,MAPPING:3,SCALAR:4,ALIAS:5,POP:6},T={PLAIN:1,SINGLE_QUOTED:2,DOUBLE_QUOTED:3,LITERAL_BLOCK:4,
FOLDED_BLOCK:5},ye={BLOCK:1,FLOW:2},J={CLIP:1,STRIP:2,KEEP:3},ca=-1;function Qr(e){switch(e){case 48:return"\0";case 97:return"\x07";case 98:return"\b";case 116:
return"	";case 9:return"	";case 110:return`
`;case 118:return"\v";case 102:return"\f";case 114:return"\r";case 101:return"\x1B";case 32:return" ";case 34:return'"';case 47:return"/";case 92:return"\\";case 78:
return"\x85";case 95:return"\xA0";case 76:return"\u2028";case 80:return"\u2029";default:return""}}var ai=new Array(256),ci=new Array(256);for(let e=0;e<256;e++)
ai[e]=Qr(e)?1:0,ci[e]=Qr(e);function la(e){return e<=65535?String.fromCharCode(e):String.fromCharCode((e-65536>>10)+55296,(e-65536&1023)+56320)}function ua(e){return e>=
48&&e<=57?e-48:(e|32)-97+10}function da(e){return e===120?2:e===117?4:8}function ht(e,t,n){let r=0;for(;t<n;){let i=e.charCodeAt(t);if(i===10)r++,t++;else if(i===
13)r++,t++,e.charCodeAt(t)===10&&t++;else if(i===32||i===9)t++;else break}return{position:t,breaks:r}}function cn(e){return e===1?" ":`
`.repeat(e-1)}function fa(e,t,n){let r="",i=t,s=t,a=t;for(;i<n;){let c=e.charCodeAt(i);if(c===10||c===13){r+=e.slice(s,a);let l=ht(e,i,n);r+=cn(l.breaks),i=s=a=
l.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(s,a)}function pa(e,t,n){let r="",i=t,s=t,a=t;for(;i<n;){let c=e.charCodeAt(i);if(c===39)r+=e.slice(s,i)+
"'",i+=2,s=a=i;else if(c===10||c===13){r+=e.slice(s,a);let l=ht(e,i,n);r+=cn(l.breaks),i=s=a=l.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(s,n)}function ma(e,t,n){
let r="",i=t,s=t,a=t;for(;i<n;){let c=e.charCodeAt(i);if(c===92){r+=e.slice(s,i),i++;let l=e.charCodeAt(i);if(l===10||l===13)i=ht(e,i,n).position;else if(l<256&&
ai[l])r+=ci[l],i++;else{let d=da(l),u=0;for(;d>0;d--){i++;let p=ua(e.charCodeAt(i));u=(u<<4)+p}r+=la(u),i++}s=a=i}else if(c===10||c===13){r+=e.slice(s,a);let l=ht(
e,i,n);r+=cn(l.breaks),i=s=a=l.position}else i++,c!==32&&c!==9&&(a=i)}return r+e.slice(s,n)}function Yr(e,t,n,r,i,s){let a=r<0?0:r,c=e.slice(t,n).replace(/\r\n?/g,
`
`),l=c===""?[]:(c.endsWith(`
`)?c.slice(0,-1):c).split(`
`),d="",u=!1,p=0,m=!1;for(let f of l){let g=0;for(;g<a&&f.charCodeAt(g)===32;)g++;if(r<0||g>=f.length){p++;continue}let _=f.slice(a),h=_.charCodeAt(0);s?h===32||
h===9?(m=!0,d+=`
`.repeat(u?1+p:p)):m?(m=!1,d+=`
`.repeat(p+1)):p===0?u&&(d+=" "):d+=`
`.repeat(p):d+=`
`.repeat(u?1+p:p),d+=_,u=!0,p=0}return i===J.KEEP?d+=`
`.repeat(u?1+p:p):i!==J.STRIP&&u&&(d+=`
`),d}function ga(e,t){if(t.valueStart===ca)return"";let{valueStart:n,valueEnd:r}=t;if(t.fast)return e.slice(n,r);switch(t.style){case T.SINGLE_QUOTED:return pa(
e,n,r);case T.DOUBLE_QUOTED:return ma(e,n,r);case T.LITERAL_BLOCK:return Yr(e,n,r,t.indent,t.chomping,!1);case T.FOLDED_BLOCK:return Yr(e,n,r,t.indent,t.chomping,
!0);default:return fa(e,n,r)}}var ha=Object.assign(Object.create(null),{"!":"!","!!":"tag:yaml.org,2002:"}),_a="-#;/?:@&=+$_.~*'()",vu=_a+"!,[]";function Vt(e){let t="",n=0;for(;n<e.length;){if(e.charCodeAt(n)!==37){t+=e[n++];continue}let r=parseInt(e.slice(n+1,n+3),16);if(n+=3,r>=192){let i=r<224?1:r<240?
2:3;for(r&=(1<<6-i)-1;i-- >0;)r=r<<6|parseInt(e.slice(n+1,n+3),16)&63,n+=3}r<65536?t+=String.fromCharCode(r):(r-=65536,t+=String.fromCharCode(55296|r>>10,56320|
r&1023))}return t}function li(e,t){if(e.startsWith("!<")&&e.endsWith(">"))return Vt(e.slice(2,-1));let n=e.indexOf("!",1),r=n===-1?"!":e.slice(0,n+1);return Vt(
t?.[r]??ha[r]??r)+Vt(e.slice(r.length))}var Ne=-1,ba="tag:yaml.org,2002:merge",ln={filename:"",schema:ra,json:!1,maxTotalMergeKeys:1e4,maxAliases:-1};function ya(e){return"tagStart"in e&&e.tagStart!==
Ne?e.tagStart:"anchorStart"in e&&e.anchorStart!==Ne?e.anchorStart:"valueStart"in e&&e.valueStart!==Ne?e.valueStart:"start"in e?e.start:0}function B(e,t){He.throwAt(
e.source,e.position,t,e.filename)}function ui(e,t,n,r){try{return n.finalize(r)}catch(i){if(i instanceof He)throw i;He.throwAt(e.source,t,i instanceof Error?i.message:
String(i),e.filename)}}function va(e,t){let n=ga(e.source,t),r=t.tagStart===Ne?"":e.source.slice(t.tagStart,t.tagEnd),i=e.schema.defaultScalarTag;if(r!==""){if(r===
"!")return{value:n,tag:i};let s=li(r,e.tagHandlers),a=e.schema.lookupScalarTag(s);if(a){let l=a.resolve(n,!0,s);return l===k&&B(e,`cannot resolve a node with !<${s}\
> explicit tag`),{value:l,tag:a}}let c=e.schema.lookupMappingTag(s)??e.schema.lookupSequenceTag(s);if(c){n!==""&&B(e,`cannot resolve a node with !<${s}> explici\
t tag`);let l=c.create(s);return{value:c.carrierIsResult?l:ui(e,e.position,c,l),tag:c}}B(e,`unknown scalar tag !<${s}>`)}return t.style===T.PLAIN?e.schema.resolveImplicitScalarTag(
n):{value:i.resolve(n,!1,i.tagName),tag:i}}function Vr(e,t,n){let r=t.tagStart===Ne?"":e.source.slice(t.tagStart,t.tagEnd);return r===""||r==="!"?n:li(r,e.tagHandlers)}
function di(e){return e.nodeKind==="mapping"}function zr(e){e.totalMergeKeys++,e.maxTotalMergeKeys!==-1&&e.totalMergeKeys>e.maxTotalMergeKeys&&B(e,`merge keys e\
xceeded maxTotalMergeKeys (${e.maxTotalMergeKeys})`)}function Xr(e,t,n,r){zr(e);for(let i of r.keys(n)){if(zr(e),t.tag.has(t.value,i))continue;let s=t.tag.addPair(
t.value,i,r.get(n,i));s&&B(e,s),t.overridable??=new Set,t.overridable.add(i)}}function wa(e,t,n,r){if(e.position=t.keyPosition,di(r))Xr(e,t,n,r);else if(r.nodeKind===
"sequence"&&Array.isArray(n)){n.length>100&&B(e,"abnormal merge sequence size");for(let i of n){let s=e.nodeTags.get(i);s||B(e,"cannot merge mappings; the provi\
ded source object is unacceptable"),Xr(e,t,i,s)}}else B(e,"cannot merge mappings; the provided source object is unacceptable")}function Sa(e,t,n,r,i){if(e.position=
t.keyPosition,t.keyIsMerge){wa(e,t,r,i);return}!e.json&&t.tag.has(t.value,n)&&!t.overridable?.has(n)&&B(e,"duplicated mapping key");let s=t.tag.addPair(t.value,
n,r);s&&B(e,s),t.overridable?.delete(n)}function zt(e,t,n){let r=e.frames[e.frames.length-1];if(r.kind==="document")r.value=t,r.hasValue=!0;else if(r.kind==="se\
quence"){di(n)&&e.nodeTags.set(t,n);let i=r.tag.addItem(r.value,t,r.index++);i&&B(e,i)}else if(r.hasKey){let i=r.key;r.key=void 0,r.hasKey=!1,Sa(e,r,i,t,n)}else
r.key=t,r.keyPosition=e.position,r.hasKey=!0,r.keyIsMerge=n.tagName===ba}function Xt(e,t,n,r,i){if(t.anchorStart!==Ne){let s={value:n,tag:r,isValueFinal:i};return e.
anchors.set(e.source.slice(t.anchorStart,t.anchorEnd),s),s}return null}function Ta(e,t){let n={...ln,...t,events:e,documents:[],eventIndex:0,position:0,frames:[],
anchors:new Map,nodeTags:new Map,tagHandlers:Object.create(null),totalMergeKeys:0,aliasCount:0};for(;n.eventIndex<n.events.length;){let r=n.events[n.eventIndex++];
switch(n.position=ya(r),r.type){case L.DOCUMENT:n.anchors=new Map,n.nodeTags=new Map,n.aliasCount=0,n.tagHandlers=Object.create(null);for(let i of r.directives)
i.kind==="tag"&&(n.tagHandlers[i.handle]=i.prefix);n.frames.push({kind:"document",position:n.position,value:void 0,hasValue:!1});break;case L.SCALAR:{let{value:i,
tag:s}=va(n,r);Xt(n,r,i,s,!0),zt(n,i,s);break}case L.SEQUENCE:{let i=Vr(n,r,"tag:yaml.org,2002:seq"),s=n.schema.lookupSequenceTag(i);s||B(n,`unknown sequence ta\
g !<${i}>`);let a=s.create(i),c=Xt(n,r,a,s,s.carrierIsResult);n.frames.push({kind:"sequence",position:n.position,value:a,tag:s,anchor:c,index:0});break}case L.MAPPING:{
let i=Vr(n,r,"tag:yaml.org,2002:map"),s=n.schema.lookupMappingTag(i);s||B(n,`unknown mapping tag !<${i}>`);let a=s.create(i),c=Xt(n,r,a,s,s.carrierIsResult);n.frames.
push({kind:"mapping",position:n.position,value:a,tag:s,anchor:c,key:void 0,keyPosition:n.position,hasKey:!1,keyIsMerge:!1,overridable:null});break}case L.ALIAS:{
n.maxAliases!==-1&&++n.aliasCount>n.maxAliases&&B(n,`aliases exceeded maxAliases (${n.maxAliases})`);let i=n.source.slice(r.anchorStart,r.anchorEnd),s=n.anchors.
get(i);s||B(n,`unidentified alias "${i}"`),s.isValueFinal||B(n,`recursive alias "${i}" is not supported for tag ${s.tag.tagName} because it uses finalize()`),zt(
n,s.value,s.tag);break}case L.POP:{let i=n.frames.pop();if(i.kind==="mapping"&&i.hasKey&&(n.position=i.keyPosition,B(n,"incomplete mapping pair in event stream")),
i.kind==="document")n.documents.push(i.value);else{let s=i.tag.carrierIsResult?i.value:ui(n,i.position,i.tag,i.value);i.anchor&&(i.anchor.value=s,i.anchor.isValueFinal=
!0),zt(n,s,i.tag)}break}}}return n.documents}var E=-1,fi=Object.prototype.hasOwnProperty,Pe=1,pi=2,mi=3,_t=4,Aa=/[\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x84\x86-\x9F\uFFFE\uFFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?:[^\uD800-\uDBFF]|^)[\uDC00-\uDFFF]/,
ka=/[,\[\]{}]/,gi=/^(?:!|!!|![0-9A-Za-z-]+!)$/,tn=String.raw`(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z\-#;/?:@&=+$,_.!~*'()\[\]])`,hi=String.raw`(?:%[0-9A-Fa-f]{2}|[0-9A-Za-z\-#;/?:@&=+$.~*'()_])`,
Ea=new RegExp(`^(?:${tn})*$`),xa=new RegExp(`^(?:${hi})+$`),Ca=new RegExp(`^(?:!(?:${tn})*|${hi}(?:${tn})*)$`),un={filename:"",maxDepth:100};function Na(e,t,n){
e.events.push({type:L.DOCUMENT,explicitStart:t,explicitEnd:n,directives:e.directives})}function _i(e,t,n,r,i,s,a){e.events.push({type:L.SEQUENCE,start:t,anchorStart:n,
anchorEnd:r,tagStart:i,tagEnd:s,style:a})}function bi(e,t,n,r,i,s,a){e.events.push({type:L.MAPPING,start:t,anchorStart:n,anchorEnd:r,tagStart:i,tagEnd:s,style:a})}
function Jr(e,t){e.events.splice(t.eventsLength,0,{type:L.MAPPING,start:t.position,anchorStart:E,anchorEnd:E,tagStart:E,tagEnd:E,style:ye.FLOW})}function Me(e,t,n,r,i,s,a,c,l=J.
CLIP,d=-1,u=!1){e.events.push({type:L.SCALAR,valueStart:t,valueEnd:n,anchorStart:r,anchorEnd:i,tagStart:s,tagEnd:a,style:c,chomping:l,indent:d,fast:u})}function Ia(e,t,n){
e.events.push({type:L.ALIAS,anchorStart:t,anchorEnd:n})}function Ie(e){e.events.push({type:L.POP})}function H(e){Me(e,E,E,E,E,E,E,T.PLAIN)}function Zr(){return{
anchorStart:E,anchorEnd:E,tagStart:E,tagEnd:E}}function Oe(e){return{position:e.position,line:e.line,lineStart:e.lineStart,lineIndent:e.lineIndent,firstTabInLine:e.
firstTabInLine,eventsLength:e.events.length}}function Le(e,t){e.position=t.position,e.line=t.line,e.lineStart=t.lineStart,e.lineIndent=t.lineIndent,e.firstTabInLine=
t.firstTabInLine,e.events.length=t.eventsLength}function b(e,t){He.throwAt(e.input.slice(0,e.length),e.position,t,e.filename)}function F(e){return e===10||e===13}
function Fe(e){return e===9||e===32}function ie(e){return Fe(e)||F(e)}function de(e){return e===0||ie(e)}function Ae(e){return e===44||e===91||e===93||e===123||
e===125}function Oa(e){return e>=48&&e<=57?e-48:-1}function La(e){if(e>=48&&e<=57)return e-48;let t=e|32;return t>=97&&t<=102?t-97+10:-1}function Pa(e){return e===
120?2:e===117?4:e===85?8:0}function $a(e){return e===48||e===97||e===98||e===116||e===9||e===110||e===118||e===102||e===114||e===101||e===32||e===34||e===47||e===
92||e===78||e===95||e===76||e===80}function bt(e){e.input.charCodeAt(e.position)===10?e.position++:(e.position++,e.input.charCodeAt(e.position)===10&&e.position++),
e.line++,e.lineStart=e.position,e.lineIndent=0,e.firstTabInLine=-1}function U(e,t){let n=0,r=e.input.charCodeAt(e.position),i=e.position===e.lineStart||ie(e.input.
charCodeAt(e.position-1));for(;r!==0;){for(;Fe(r);)i=!0,r===9&&e.firstTabInLine===-1&&(e.firstTabInLine=e.position),r=e.input.charCodeAt(++e.position);if(t&&i&&
r===35)do r=e.input.charCodeAt(++e.position);while(!F(r)&&r!==0);if(!F(r))break;for(bt(e),n++,i=!0,r=e.input.charCodeAt(e.position);r===32;)e.lineIndent++,r=e.input.
charCodeAt(++e.position)}return n}function $e(e,t=e.position){let n=e.input.charCodeAt(t);if((n===45||n===46)&&n===e.input.charCodeAt(t+1)&&n===e.input.charCodeAt(
t+2)){let r=e.input.charCodeAt(t+3);return r===0||ie(r)}return!1}function yi(e){e.position===e.lineStart&&e.input.charCodeAt(e.position)===65279&&(e.position++,
e.lineStart=e.position)}function dn(e){if(e.position!==e.lineStart)return!1;if($e(e))return!0;if(e.input.charCodeAt(e.position)!==65279)return!1;let t=Oe(e);yi(
e),U(e,!0);let n=e.input.charCodeAt(e.position),r=e.position===e.lineStart&&(n===37||n===45&&$e(e));return Le(e,t),r}function ei(e){let t=e.input.charCodeAt(e.position);
for(;t!==0&&!F(t);)t=e.input.charCodeAt(++e.position)}function vi(e,t,n){let r=Aa.exec(e.input.slice(t,n));r!==null&&(e.position=t+r.index+r[0].length-1,b(e,"th\
e stream contains non-printable characters"))}function Ra(e,t,n){if(e.input.charCodeAt(e.position)!==33)return!1;t.tagStart!==E&&b(e,"duplication of a tag prope\
rty");let r=e.position,i=!1,s=!1,a="!",c=e.input.charCodeAt(++e.position);c===60?(i=!0,c=e.input.charCodeAt(++e.position)):c===33&&(s=!0,a="!!",c=e.input.charCodeAt(
++e.position));let l=e.position,d;if(i){for(;c!==0&&c!==62;)c=e.input.charCodeAt(++e.position);c!==62&&b(e,"unexpected end of the stream within a verbatim tag"),
d=e.input.slice(l,e.position),e.position++}else{for(;c!==0&&!ie(c)&&!(n&&Ae(c));)c===33&&(s?b(e,"tag suffix cannot contain exclamation marks"):(a=e.input.slice(
l-1,e.position+1),gi.test(a)||b(e,"named tag handle cannot contain such characters"),s=!0,l=e.position+1)),c=e.input.charCodeAt(++e.position);d=e.input.slice(l,
e.position),ka.test(d)&&b(e,"tag suffix cannot contain flow indicator characters")}return d&&!(i?Ea.test(d):xa.test(d))&&b(e,`tag name cannot contain such chara\
cters: ${d}`),!i&&a!=="!"&&a!=="!!"&&!fi.call(e.tagHandlers,a)&&b(e,`undeclared tag handle "${a}"`),t.tagStart=r,t.tagEnd=e.position,!0}function Ma(e,t){if(e.input.
charCodeAt(e.position)!==38)return!1;t.anchorStart!==E&&b(e,"duplication of an anchor property"),e.position++;let n=e.position;for(;e.input.charCodeAt(e.position)!==
0&&!ie(e.input.charCodeAt(e.position))&&!Ae(e.input.charCodeAt(e.position));)e.position++;return e.position===n&&b(e,"name of an anchor node must contain at lea\
st one character"),t.anchorStart=n,t.anchorEnd=e.position,!0}function Fa(e,t){if(e.input.charCodeAt(e.position)!==42)return!1;(t.anchorStart!==E||t.tagStart!==E)&&
b(e,"alias node should not have any properties"),e.position++;let n=e.position;for(;e.input.charCodeAt(e.position)!==0&&!ie(e.input.charCodeAt(e.position))&&!Ae(
e.input.charCodeAt(e.position));)e.position++;return e.position===n&&b(e,"name of an alias node must contain at least one character"),Ia(e,n,e.position),!0}function nn(e,t){
U(e,!1),e.lineIndent<t&&b(e,"deficient indentation")}function Da(e,t,n){if(e.input.charCodeAt(e.position)!==39)return!1;e.position++;let r=e.position,i=!0;for(;e.
input.charCodeAt(e.position)!==0;){let s=e.input.charCodeAt(e.position);if(s===39){if(e.input.charCodeAt(e.position+1)===39){i=!1,e.position+=2;continue}let a=e.
position;return e.position++,Me(e,r,a,n.anchorStart,n.anchorEnd,n.tagStart,n.tagEnd,T.SINGLE_QUOTED,J.CLIP,-1,i),!0}F(s)?(i=!1,nn(e,t)):e.position===e.lineStart&&
$e(e)?b(e,"unexpected end of the document within a single quoted scalar"):s!==9&&s<32?b(e,"expected valid JSON character"):e.position++}b(e,"unexpected end of t\
he stream within a single quoted scalar")}function Ba(e,t,n){if(e.input.charCodeAt(e.position)!==34)return!1;e.position++;let r=e.position,i=!0;for(;e.input.charCodeAt(
e.position)!==0;){let s=e.input.charCodeAt(e.position);if(s===34){let a=e.position;return e.position++,Me(e,r,a,n.anchorStart,n.anchorEnd,n.tagStart,n.tagEnd,T.
DOUBLE_QUOTED,J.CLIP,-1,i),!0}if(s===92){i=!1;let a=e.input.charCodeAt(++e.position);if(F(a))nn(e,t);else if($a(a))e.position++;else{let c=Pa(a);for(c===0&&b(e,
"unknown escape sequence");c-- >0;)e.position++,La(e.input.charCodeAt(e.position))<0&&b(e,"expected hexadecimal character");e.position++}}else F(s)?(i=!1,nn(e,t)):
e.position===e.lineStart&&$e(e)?b(e,"unexpected end of the document within a double quoted scalar"):s!==9&&s<32?b(e,"expected valid JSON character"):e.position++}
b(e,"unexpected end of the stream within a double quoted scalar")}function Ua(e,t,n){let r=e.input.charCodeAt(e.position),i=J.CLIP,s=-1,a=!1;if(r!==124&&r!==62)
return!1;let c=r===124?T.LITERAL_BLOCK:T.FOLDED_BLOCK;for(e.position++;e.input.charCodeAt(e.position)!==0;){let f=e.input.charCodeAt(e.position),g=Oa(f);if(f===
43||f===45)i!==J.CLIP&&b(e,"repeat of a chomping mode identifier"),i=f===43?J.KEEP:J.STRIP,e.position++;else if(g>=0)g===0&&b(e,"bad explicit indentation width \
of a block scalar; it cannot be less than one"),a&&b(e,"repeat of an indentation width identifier"),s=t+g-1,a=!0,e.position++;else break}let l=!1;for(;Fe(e.input.
charCodeAt(e.position));)l=!0,e.position++;l&&e.input.charCodeAt(e.position)===35&&ei(e),F(e.input.charCodeAt(e.position))?bt(e):e.input.charCodeAt(e.position)!==
0&&b(e,"a line break is expected");let d=a?s:-1,u=0,p=e.position,m=e.position;for(;e.input.charCodeAt(e.position)!==0;){let f=e.position,g=0;for(;e.input.charCodeAt(
f+g)===32;)g++;let _=e.input.charCodeAt(f+g);if(_===0){d>=0?g>d&&(m=f+g):g>0&&(m=f+g);break}if(dn(e))break;if(!a&&d===-1&&F(_)&&(u=Math.max(u,g)),!a&&d===-1&&!F(
_)&&(_===9&&g<t&&(e.position=f+g,b(e,"tab characters must not be used in indentation")),g>=t&&g<u&&(e.position=f+g,b(e,"bad indentation of a mapping entry"))),d===
-1&&_!==0&&!F(_)&&g<t){e.lineIndent=g,e.position=f+g;break}!a&&_!==0&&!F(_)&&d===-1&&(d=g);let h=d===-1?t+1:d;if(_!==0&&!F(_)&&g<h){e.lineIndent=g,e.position=f+
g;break}ei(e),m=e.position,F(e.input.charCodeAt(e.position))&&(bt(e),m=e.position)}return vi(e,p,m),Me(e,p,m,n.anchorStart,n.anchorEnd,n.tagStart,n.tagEnd,c,i,d),
!0}function Ga(e,t){let n=e.input.charCodeAt(e.position),r=t===Pe;if(n===0||ie(n)||n===35||n===38||n===42||n===33||n===124||n===62||n===39||n===34||n===37||n===
64||n===96||Ae(n))return!1;if(n===63||n===45){let i=e.input.charCodeAt(e.position+1);if(de(i)||r&&Ae(i))return!1}return!0}function qa(e,t,n,r){if(!Ga(e,n))return!1;
let i=e.position,s=e.position,a=e.input.charCodeAt(e.position),c=n===Pe,l=!1;for(;a!==0&&!dn(e);){if(a===58){let d=e.input.charCodeAt(e.position+1);if(de(d)||c&&
Ae(d))break}else if(a===35){if(ie(e.input.charCodeAt(e.position-1)))break}else{if(c&&Ae(a))break;if(F(a)){let d=e.position,u=e.line,p=e.lineStart,m=e.lineIndent;
if(U(e,!1),e.lineIndent>=t){l=!0,a=e.input.charCodeAt(e.position);continue}e.position=d,e.line=u,e.lineStart=p,e.lineIndent=m;break}}Fe(a)||(s=e.position+1),a=e.
input.charCodeAt(++e.position)}return s===i?!1:(vi(e,i,s),Me(e,i,s,r.anchorStart,r.anchorEnd,r.tagStart,r.tagEnd,T.PLAIN,J.CLIP,-1,!l),!0)}function We(e,t){let n=e.
line;U(e,!0),(e.line>n&&e.lineIndent<t||e.firstTabInLine!==-1&&e.lineIndent<t)&&b(e,"deficient indentation")}function Ka(e,t,n){let r=e.input.charCodeAt(e.position),
i=r===123,s=e.position,a=!0;if(r!==91&&r!==123)return!1;let c=i?125:93;for(i?bi(e,s,n.anchorStart,n.anchorEnd,n.tagStart,n.tagEnd,ye.FLOW):_i(e,s,n.anchorStart,
n.anchorEnd,n.tagStart,n.tagEnd,ye.FLOW),e.position++;e.input.charCodeAt(e.position)!==0;){We(e,t);let l=e.input.charCodeAt(e.position);if(l===c)return e.position++,
Ie(e),!0;a?l===44&&b(e,"expected the node content, but found ','"):b(e,"missed comma between flow collection entries");let d=!1,u=!1;l===63&&ie(e.input.charCodeAt(
e.position+1))&&(d=u=!0,e.position+=1,We(e,t));let p=e.line,m=Oe(e),f=Re(e,t,Pe,!1,!0);We(e,t),l=e.input.charCodeAt(e.position),(i||u||e.line===p)&&l===58?(d=!0,
e.position++,We(e,t),i||Jr(e,m),f||H(e),Re(e,t,Pe,!1,!0)||H(e),We(e,t),i||Ie(e)):i&&d?(f||H(e),H(e)):i?H(e):d&&(Jr(e,m),f||H(e),H(e),Ie(e)),l=e.input.charCodeAt(
e.position),l===44?(a=!0,e.position++):a=!1}b(e,"unexpected end of the stream within a flow collection")}function ti(e,t,n){if(e.firstTabInLine!==-1||e.input.charCodeAt(
e.position)!==45||!de(e.input.charCodeAt(e.position+1)))return!1;for(_i(e,e.position,n.anchorStart,n.anchorEnd,n.tagStart,n.tagEnd,ye.BLOCK);e.input.charCodeAt(
e.position)===45&&de(e.input.charCodeAt(e.position+1));){e.firstTabInLine!==-1&&(e.position=e.firstTabInLine,b(e,"tab characters must not be used in indentation"));
let r=e.line;e.position++;let i=U(e,!0)>0;if(e.firstTabInLine!==-1&&e.input.charCodeAt(e.position)===45&&de(e.input.charCodeAt(e.position+1))&&b(e,"bad indentat\
ion of a sequence entry"),i&&e.lineIndent<=t?H(e):Re(e,t,mi,!1,!0),U(e,!0),e.lineIndent<t||e.position>=e.length)break;e.lineIndent>t&&b(e,"bad indentation of a \
sequence entry"),e.line===r&&e.input.charCodeAt(e.position)===45&&de(e.input.charCodeAt(e.position+1))&&b(e,"bad indentation of a sequence entry")}return Ie(e),
!0}function Jt(e,t,n,r){let i=!1,s=!1,a=!1,c=!1;if(e.firstTabInLine!==-1)return!1;let l=e.input.charCodeAt(e.position);for(;l!==0;){!i&&e.firstTabInLine!==-1&&(e.
position=e.firstTabInLine,b(e,"tab characters must not be used in indentation"));let d=e.input.charCodeAt(e.position+1),u=e.line;if((l===63||l===58)&&de(d))a||(bi(
e,e.position,r.anchorStart,r.anchorEnd,r.tagStart,r.tagEnd,ye.BLOCK),a=!0),l===63?(i&&H(e),s=!0,i=!0):(i||(H(e),s=!0),i=!1),e.position+=1,c=!0;else{i&&(H(e),i=!1);
let p=Oe(e);if(!Re(e,n,pi,!1,!0))break;if(e.line===u){for(l=e.input.charCodeAt(e.position);Fe(l);)l=e.input.charCodeAt(++e.position);if(l===58)l=e.input.charCodeAt(
++e.position),de(l)||b(e,"a whitespace character is expected after the key-value separator within a block mapping"),a||(e.events.splice(p.eventsLength,0,{type:L.
MAPPING,start:p.position,anchorStart:r.anchorStart,anchorEnd:r.anchorEnd,tagStart:r.tagStart,tagEnd:r.tagEnd,style:ye.BLOCK}),a=!0),s=!0,i=!1,c=!1;else if(s)b(e,
"expected ':' after a mapping key");else return r.anchorStart!==E||r.tagStart!==E?(Le(e,p),!1):!0}else if(s)b(e,"can not read a block mapping entry; a multiline\
 key may not be an implicit key");else return r.anchorStart!==E||r.tagStart!==E?(Le(e,p),!1):!0}if(Re(e,t,_t,!0,c)&&(c=!1),i||c&&(H(e),c=!1),U(e,!0),l=e.input.charCodeAt(
e.position),(e.line===u||e.lineIndent>t)&&l!==0)b(e,"bad indentation of a mapping entry");else if(e.lineIndent<t)break}return s?(i&&H(e),a&&Ie(e),!0):!1}function Re(e,t,n,r,i,s=!0){
e.depth>=e.maxDepth&&b(e,`nesting exceeded maxDepth (${e.maxDepth})`),e.depth++;let a=1,c=!1,l=!1,d=null,u=Zr(),p=n===_t||n===mi,m=p,f=p;if(r&&U(e,!0)&&(c=!0,e.
lineIndent>t?a=1:e.lineIndent===t?a=0:a=-1),a===1)for(;;){let g=e.input.charCodeAt(e.position),_=Oe(e);if(c&&a!==1&&(g===33||g===38))break;if(c&&f&&(u.tagStart!==
E||u.anchorStart!==E)&&(g===33||g===38)){let h=Oe(e),y=t+1;if(Jt(e,e.position-e.lineStart,y,u)&&e.events[h.eventsLength]?.type===L.MAPPING)return e.depth--,!0;Le(
e,h)}if(c&&(g===33&&u.tagStart!==E||g===38&&u.anchorStart!==E)||!Ra(e,u,n===Pe)&&!Ma(e,u))break;d===null&&(d=_),U(e,!0)?(c=!0,m=f,e.lineIndent>t?a=1:e.lineIndent===
t?a=0:a=-1):m=!1}if(m&&(m=c||i),a===1||n===_t){let g=n===Pe||n===pi?t:t+1,_=e.position-e.lineStart;if(a===1)if(m&&(ti(e,_,u)||Jt(e,_,g,u))||Ka(e,g,u))l=!0;else{
let h=e.input.charCodeAt(e.position);if(d!==null&&s&&f&&!m&&h!==124&&h!==62){let y=Oe(e),v=d.position-d.lineStart;Le(e,d),Jt(e,v,g,Zr())&&e.events[y.eventsLength]?.
type===L.MAPPING?l=!0:Le(e,y)}!l&&(p&&Ua(e,g,u)||Da(e,g,u)||Ba(e,g,u)||Fa(e,u)||qa(e,g,n,u))&&(l=!0)}else a===0&&(l=m&&ti(e,_,u))}return p=p&&!l,!l&&(u.anchorStart!==
E||u.tagStart!==E||p)&&(Me(e,E,E,u.anchorStart,u.anchorEnd,u.tagStart,u.tagEnd,T.PLAIN),l=!0),e.depth--,l||u.anchorStart!==E||u.tagStart!==E}function ja(e){if(e.
lineIndent>0||e.input.charCodeAt(e.position)!==37)return!1;e.position++;let t=e.position;for(;e.input.charCodeAt(e.position)!==0&&!ie(e.input.charCodeAt(e.position));)
e.position++;let n=e.input.slice(t,e.position),r=[];for(n.length===0&&b(e,"directive name must not be less than one character in length");e.input.charCodeAt(e.position)!==
0&&!F(e.input.charCodeAt(e.position));){for(;Fe(e.input.charCodeAt(e.position));)e.position++;if(e.input.charCodeAt(e.position)===35||F(e.input.charCodeAt(e.position))||
e.input.charCodeAt(e.position)===0)break;let i=e.position;for(;e.input.charCodeAt(e.position)!==0&&!ie(e.input.charCodeAt(e.position));)e.position++;r.push(e.input.
slice(i,e.position))}if(F(e.input.charCodeAt(e.position))&&bt(e),n==="YAML"){e.directives.some(s=>s.kind==="yaml")&&b(e,"duplication of %YAML directive"),r.length!==
1&&b(e,"YAML directive accepts exactly one argument");let i=/^([0-9]+)\.([0-9]+)$/.exec(r[0]);i===null&&b(e,"ill-formed argument of the YAML directive"),parseInt(
i[1],10)!==1&&b(e,"unacceptable YAML version of the document"),e.directives.push({kind:"yaml",version:r[0]})}else if(n==="TAG"){r.length!==2&&b(e,"TAG directive\
 accepts exactly two arguments");let[i,s]=r;gi.test(i)||b(e,"ill-formed tag handle (first argument) of the TAG directive"),fi.call(e.tagHandlers,i)&&b(e,`there \
is a previously declared suffix for "${i}" tag handle`),Ca.test(s)||b(e,"ill-formed tag prefix (second argument) of the TAG directive"),e.tagHandlers[i]=s,e.directives.
push({kind:"tag",handle:i,prefix:s})}return!0}function Wa(e){e.directives=[],e.tagHandlers=Object.create(null);let t=!1;for(U(e,!0);ja(e);)t=!0,U(e,!0);let n=!1,
r=!1,i=!0;if(e.lineIndent===0&&e.input.charCodeAt(e.position)===45&&e.input.charCodeAt(e.position+1)===45&&e.input.charCodeAt(e.position+2)===45&&de(e.input.charCodeAt(
e.position+3))){n=!0;let c=e.line;e.position+=3,U(e,!0),i=e.line>c}else t&&b(e,"directives end mark is expected");let s=e.events.length;if(!n&&e.position===e.lineStart&&
e.input.charCodeAt(e.position)===46&&$e(e)){e.position+=3,U(e,!0);return}if(Na(e,n,!1),Re(e,e.lineIndent-1,_t,!1,i,i)||H(e),U(e,!0),e.position===e.lineStart&&$e(
e)&&(r=e.input.charCodeAt(e.position)===46,r)){let c=e.line;e.position+=3,U(e,!0),e.line===c&&e.position<e.length&&b(e,"end of the stream or a document separato\
r is expected")}let a=e.events[s];a?.type===L.DOCUMENT&&(a.explicitEnd=r),Ie(e),!r&&e.position<e.length&&!dn(e)&&b(e,"end of the stream or a document separator \
is expected")}function Ha(e,t){let n=e.length,r={...un,...t,input:`${e}\0`,length:n,position:0,line:0,lineStart:0,lineIndent:0,firstTabInLine:-1,depth:0,directives:[],
tagHandlers:Object.create(null),events:[]},i=e.indexOf("\0");for(i!==-1&&He.throwAt(e,i,"null byte is not allowed in input",r.filename);r.position<r.length&&(yi(
r),U(r,!0),!(r.position>=r.length));){let s=r.position;Wa(r),r.position===s&&b(r,"can not read a document")}return r.events}var Qa={...un,...ln};function Ya(e,t={}){
let n={...Qa,...t},r=String(e),i=Object.keys(un),s=Object.keys(ln);return Ta(Ha(r,jr(n,i)),{...jr(n,s),source:r})}function wi(e,t,n){let r=null;typeof t=="funct\
ion"?r=t:t!==null&&typeof t=="object"&&(n=t);let i=Ya(e,n);if(r===null)return i;for(let s of i)r(s)}function St(e,t){return(e&1<<t)!==0}var ni={applyQuoteFlowKeysOption:Va,doubleQuoteForInvisibles:za,doubleQuoteWhitespaceOnly:Xa,applyForceQuotesOption:Ja,tryLongOrMultilineAsBlock:Za,
quoteInvalidPlain:ec,fallbackToDoubleQuoted:tc};function Si(e){return e.presenterOptions.quoteStyle==="single"&&St(e.allowedStylesMask,T.SINGLE_QUOTED)?T.SINGLE_QUOTED:
T.DOUBLE_QUOTED}function Va(e){e.presenterOptions.quoteFlowKeys&&(!e.isKey||!e.flowOnly||e.style!==T.PLAIN||(e.style=T.DOUBLE_QUOTED))}function za(e){e.style===
T.PLAIN&&/[\t\x7F-\xA0\u2028\u2029\uFEFF\uFFFE\uFFFF]/.test(e.node.value)&&(e.style=T.DOUBLE_QUOTED)}function Xa(e){e.style===T.PLAIN&&/^\s+$/.test(e.node.value)&&
(e.style=T.DOUBLE_QUOTED)}function Ja(e){e.presenterOptions.forceQuotes&&(e.isKey||e.style!==T.PLAIN||e.node.tag===e.presenterOptions.schema.defaultScalarTag.tagName&&
(e.style=e.node.value.includes(`
`)?T.DOUBLE_QUOTED:Si(e)))}function Za(e){if(e.style!==T.PLAIN||e.isKey)return;let t=e.node.value,n=t.indexOf(`
`)!==-1;if(!St(e.allowedStylesMask,T.LITERAL_BLOCK)){n&&(e.style=T.DOUBLE_QUOTED);return}let r=e.presenterOptions.lineWidth;if(r===-1){n&&(e.style=T.LITERAL_BLOCK);
return}let i=Math.max(Math.min(r,40),r-e.shiftOfContent),s=0,a=!1;for(;s<=t.length;){let c=t.length,l=t.indexOf(`
`,s);l!==-1&&(c=l);let d=t.slice(s,c);if(d.length>i&&d[0]!==" "&&/ [^ \t]/.test(d)&&(a=!0),l===-1)break;s=l+1}a?e.style=T.FOLDED_BLOCK:n&&(e.style=T.LITERAL_BLOCK)}
function ec(e){e.style===T.PLAIN&&!St(e.allowedStylesMask,T.PLAIN)&&(e.style=Si(e))}function tc(e){St(e.allowedStylesMask,e.style)||(e.style=T.DOUBLE_QUOTED)}var nc="[\\x09\\x0A\\x0D\\x20-\\x7E\\x85\\xA0-\\uD7FF\\uE000-\\uFFFD\\u{10000}-\\u{10FFFF}]",rc="[\\n\\r]",ic="\\uFEFF",fn="[ \\t]",Ti=`(?:(?!(?:${rc}|${ic}))${nc}\
)`,Tt=`(?:(?!${fn})${Ti})`,Ai="[\\x09\\x20-\\uD7FF\\uE000-\\uFFFF\\u{10000}-\\u{10FFFF}]",ki="[-?:,\\[\\]{}#&*!|>'\"%@`]",oc="[,\\[\\]{}]",rn=Tt,on=`(?:(?!${oc}\
)${Tt})`,sc=`(?:(?:(?!${ki})${Tt})|[?:-](?=${rn}))`,ac=`(?:(?:(?!${ki})${Tt})|[?:-](?=${on}))`,Ei=`(?:(?:(?![:#])${rn})|:(?=${rn}))#*`,xi=`(?:(?:(?![:#])${on})|\
:(?=${on}))#*`,Ci=`(?:${fn}*${Ei})*`,Ni=`(?:${fn}*${xi})*`,Ii=`${sc}#*${Ci}`,Oi=`${ac}#*${Ni}`,cc=Ii,lc=Oi,uc=`\\n+${Ei}${Ci}`,dc=`\\n+${xi}${Ni}`,fc=`${Ii}(?:${uc}\
)*`,pc=`${Oi}(?:${dc})*`,wu=new RegExp(`^(?:${fc})$`,"u"),Su=new RegExp(`^(?:${pc})$`,"u"),Tu=new RegExp(`^(?:${cc})$`,"u"),Au=new RegExp(`^(?:${lc})$`,"u"),ku=new RegExp(
`^(?:${Ai})*$`,"u"),Eu=new RegExp(`^(?:${Ai}|\\n)*$`,"u"),xu=new RegExp(`^(?:${Ti}|\\n)*$`,"u");var mc={indent:2,seqNoIndent:!1,seqInlineFirst:!0,lineWidth:80,flowBracketPadding:!1,flowSkipCommaSpace:!1,flowSkipColonSpace:!1,quoteFlowKeys:!1,quoteStyle:"si\
ngle",forceQuotes:!1,scalarStyleRules:Object.keys(ni).map(e=>Reflect.get(ni,e)),tagBeforeAnchor:!1};var Cu={...mc,schema:oa,skipInvalid:!1,noRefs:!1,flowLevel:-1,sortKeys:!1,transform:()=>{}};var Nu=L.DOCUMENT,Iu=L.SEQUENCE,Ou=L.MAPPING,Lu=L.SCALAR,Pu=L.ALIAS,$u=L.POP,Ru=T.PLAIN,Mu=T.SINGLE_QUOTED,Fu=T.DOUBLE_QUOTED,Du=T.LITERAL_BLOCK,Bu=T.FOLDED_BLOCK,
Uu=ye.BLOCK,Gu=ye.FLOW,qu=J.CLIP,Ku=J.STRIP,ju=J.KEEP;var gc=1e6;function Li(e){if(e.length>gc)throw new Error("the manifests must have at most 1 MB");let t=[];for(let n of wi(e))if(n!=null){if(typeof n!="object"||
Array.isArray(n))throw new Error("a manifest must be an object");t.push(n)}if(!t.length)throw new Error("there is no manifest");return t}function Pi(e){for(let t of e){
let n=t.metadata?.namespace;if(typeof n=="string"&&n)return n}return""}var hc=100;function $i(){let e=j(),t=$(e.gangs),n=x(()=>[...new Set(t.items.map(h=>h.metadata.namespace??""))].sort(),[t.items]),[r,i]=O(""),[s,a]=O(""),[c,l]=O(
!1),[d,u]=O(""),[p,m]=O(),f=ue(void 0),g=async()=>{f.current?.abort();let h=f.current=new AbortController;u(""),m(void 0),l(!0);try{let y=Li(r),v=await e.api.fit(
s||Pi(y)||"default",y,h.signal);h.signal.aborted||m(v)}catch(y){h.signal.aborted||u(y instanceof Error?y.message:String(y))}finally{h.signal.aborted||l(!1)}},_=async h=>{
let y=await Promise.all([...h??[]].map(v=>v.text()));y.length&&i(y.join(`
---
`))};return o(S,{children:[o(Y,{of:[t],children:"What if"}),o("p",{children:"Would the gangs of these manifests fit now? Nothing is created."}),o("form",{onSubmit:h=>{
h.preventDefault(),g()},onDragOver:h=>h.preventDefault(),onDrop:h=>{h.preventDefault(),_(h.dataTransfer?.files)},children:[o("label",{for:"manifests",children:"\
Manifests (YAML or JSON; paste or drop files)"}),o("textarea",{id:"manifests",rows:16,spellcheck:!1,value:r,onInput:h=>i(h.currentTarget.value),onKeyDown:h=>{h.
key==="Enter"&&h.ctrlKey&&g()}}),o("div",{class:"filters",children:[o("label",{children:["Namespace ",o("input",{list:"namespaces",value:s,placeholder:"of the m\
anifests",onInput:h=>a(h.currentTarget.value)})]}),o("datalist",{id:"namespaces",children:n.map(h=>o("option",{value:h},h))}),o("label",{class:"file",children:[
"File ",o("input",{type:"file",multiple:!0,accept:".yaml,.yml,.json",onChange:h=>{_(h.currentTarget.files)}})]}),o("button",{type:"submit",disabled:c||!r.trim(),
children:c?"Asking \u2026":"Does it fit?"})]})]}),o("div",{"aria-live":"polite",children:[d&&o("p",{class:"error",children:d}),p?.status&&o(_c,{gangs:p.status.gangs??
[]})]})]})}function _c({gangs:e}){return o(S,{children:e.map(t=>o(bc,{fit:t},t.name))})}function bc({fit:e}){let[t,n]=e.fits?["fits now","good"]:e.refused?["ref\
used","bad"]:e.ever?["does not fit now","wait"]:[e.needsNodes?"needs more or other nodes":"can never run here","bad"],r=e.placement??[];return o("section",{children:[
o("h2",{children:[e.name," ",o("span",{class:`badge ${n}`,children:t})]}),o("p",{children:[e.members," members. ",e.message]}),e.displaces&&o("p",{children:[e.displaces.
members," pods would be evicted for it (",e.displaces.action,"): ",o(_e,{named:e.displaces.gangs})]}),r.length>0&&o(X,{label:`Placement of ${e.name}`,children:o(
"table",{children:[o("thead",{children:o("tr",{children:[o("th",{scope:"col",children:"Node"}),o("th",{scope:"col",class:"number",children:"Members"})]})}),o("t\
body",{children:r.slice(0,hc).map(i=>o("tr",{children:[o("th",{scope:"row",children:i.node}),o("td",{class:"number",children:i.members})]},i.node))})]})})]})}var Qe="tutti.token",pn=[{page:"overview",title:"Overview",view:Cr},{page:"queues",title:"Queues",view:Or},{page:"gangs",title:"Gangs",view:vr},{page:"map",title:"\
Map",view:xr},{page:"timeline",title:"Timeline",view:qr},{page:"what-if",title:"What if",view:$i}];function yc(){let[e,t]=O(()=>sessionStorage.getItem(Qe)??""),
[n,r]=O({at:e?"in":"unknown"}),[i,s]=O(),a=x(()=>{let d=u=>{if(!e)return s(u);u&&(sessionStorage.removeItem(Qe),r({at:"token form",message:"The token was refuse\
d."}))};return new dt(new ot(e,d))},[e]);q(()=>()=>a.stop(),[a]),q(()=>{n.at==="unknown"&&a.api.check().then(()=>r({at:"in"}),d=>{let u=d instanceof V?d.noUser:
void 0;r(u==="token wanted"?{at:"token form",message:""}:u?{at:"no user",why:u}:{at:"no answer",message:d.message})})},[a,n]);let c=d=>{sessionStorage.setItem(Qe,
d),t(d),r({at:"in"})},l=()=>{sessionStorage.removeItem(Qe),t(""),r({at:"token form",message:""})};switch(n.at){case"unknown":return o("main",{class:"login",children:"\
Connecting \u2026"});case"token form":return o(Wn,{onToken:c,message:n.message});case"no answer":return o(Qn,{message:n.message});case"no user":return o(Hn,{why:n.
why});case"in":return o(Gt.Provider,{value:a,children:o(vc,{onLogOut:e?l:void 0,ended:i})})}}function vc({onLogOut:e,ended:t}){let n=lr(),r=pn.find(p=>p.page===
n.page)??pn[0],i=n.page==="gangs"&&n.parts.length===2,s=i?fr:r.view,a=ue(null),c=[n.page,...n.parts].join("/"),l=ue(!0);q(()=>{document.title=`${i?n.parts[1]:r.
title} \u2013 Tutti`,!l.current&&document.activeElement?.tagName!=="INPUT"&&a.current?.focus(),l.current=!1},[c]);let d=p=>{let m=xe(location.hash);m.page==="ga\
ngs"&&!m.parts.length?D("search",p):location.hash=`${z("gangs")}?${new URLSearchParams({search:p})}`},u=n.page==="gangs"&&!i?n.query.get("search")??"":"";return o(
S,{children:[o("a",{class:"skip",href:"#main",onClick:p=>{p.preventDefault(),a.current?.focus()},children:"Skip to content"}),o("header",{children:[o("strong",{
class:"brand",children:"Tutti"}),o("nav",{"aria-label":"Pages",children:pn.map(({page:p,title:m})=>o("a",{href:z(p),"aria-current":r.page===p?"page":void 0,children:m},
p))}),o(ur,{value:u,onSearch:d}),o(dr,{}),e&&o("button",{type:"button",onClick:e,children:"Log out"})]}),o("main",{id:"main",tabIndex:-1,ref:a,children:[t&&o(Yn,
{why:t}),o(s,{route:n},i?c:r.page)]})]})}function wc(){let e=new URLSearchParams(location.hash.slice(1)).get("token");e&&(sessionStorage.setItem(Qe,e),history.replaceState(
null,"",location.pathname))}jn();wc();addEventListener("hashchange",()=>{location.hash.startsWith("#token=")&&location.reload()});xn(o(yc,{}),document.getElementById(
"app"));
